"""Faults of the chapter `batch`."""
