"""Checks of the chapter `optimiser`."""
