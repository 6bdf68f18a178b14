"""Decoder-only models as they come: building, call, parameters and choices are read by numbers."""
