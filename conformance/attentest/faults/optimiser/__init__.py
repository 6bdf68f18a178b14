"""Faults of the chapter `optimiser`."""
