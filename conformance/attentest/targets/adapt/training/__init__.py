"""Parts of training that were not written for the contract: schedules and optimisers."""
