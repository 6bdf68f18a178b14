"""Checks of the chapter `model`."""
