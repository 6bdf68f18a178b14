"""Functions that decode, read and put behind the contract."""
