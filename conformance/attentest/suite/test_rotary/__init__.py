"""Checks of the chapter `rotary`."""
