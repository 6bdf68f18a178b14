"""Construction of decoder-only models: sizes, settings, parts as objects, functions."""
