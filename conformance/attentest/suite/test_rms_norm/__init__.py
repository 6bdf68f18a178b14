"""Checks of the chapter `rms_norm`."""
