"""Faults of the chapter `rotary`."""
