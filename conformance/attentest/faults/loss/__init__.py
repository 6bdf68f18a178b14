"""Faults of the chapter `loss`."""
