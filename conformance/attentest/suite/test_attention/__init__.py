"""Checks of the chapter `attention`."""
