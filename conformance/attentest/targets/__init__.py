"""Targets: a name, file, object or program becomes a backend."""
