"""Checks of the chapter `decoding`; the model is a table of scores."""
