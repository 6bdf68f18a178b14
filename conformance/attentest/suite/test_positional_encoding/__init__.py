"""Checks of the chapter `positional_encoding`."""
