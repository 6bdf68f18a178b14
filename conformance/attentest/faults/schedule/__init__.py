"""Faults of the chapter `schedule`."""
