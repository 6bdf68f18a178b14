"""Faults of the chapter `cache`."""
