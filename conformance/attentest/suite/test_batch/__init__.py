"""Checks of the chapter `batch`."""
