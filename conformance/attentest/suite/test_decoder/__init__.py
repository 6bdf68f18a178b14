"""Checks of the chapter `decoder`."""
