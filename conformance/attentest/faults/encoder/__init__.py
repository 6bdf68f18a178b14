"""Faults of the chapter `encoder`; those that the decoder shares are in `faults.stacks`."""
