"""Faults of the chapter `embedding`."""
