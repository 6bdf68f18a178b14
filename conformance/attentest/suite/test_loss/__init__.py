"""Checks of the chapter `loss`."""
