"""Faults of the chapter `model`."""
