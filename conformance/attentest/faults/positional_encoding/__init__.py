"""Faults of the chapter `positional_encoding`."""
