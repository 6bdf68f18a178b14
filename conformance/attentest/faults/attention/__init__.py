"""Faults of the chapter `attention`."""
