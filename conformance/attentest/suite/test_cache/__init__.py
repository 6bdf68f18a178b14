"""Checks of the chapter `cache`."""
