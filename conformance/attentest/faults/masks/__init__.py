"""Faults of the chapter `masks`."""
