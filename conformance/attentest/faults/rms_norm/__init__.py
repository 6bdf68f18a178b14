"""Faults of the chapter `rms_norm`."""
