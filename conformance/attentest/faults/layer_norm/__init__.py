"""Faults of the chapter `layer_norm`."""
