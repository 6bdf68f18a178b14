"""Faults of the chapter `decoding`."""
