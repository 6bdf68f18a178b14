"""Checks of the chapter `language_model`."""
