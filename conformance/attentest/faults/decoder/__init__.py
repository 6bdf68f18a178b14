"""Faults of the chapter `decoder`; those that the encoder shares are in `faults.stacks`."""
