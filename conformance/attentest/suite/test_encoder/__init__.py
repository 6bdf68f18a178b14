"""Checks of the chapter `encoder`."""
