"""Faults of the chapter `language_model`."""
