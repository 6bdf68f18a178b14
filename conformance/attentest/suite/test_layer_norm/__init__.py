"""Checks of the chapter `layer_norm`."""
