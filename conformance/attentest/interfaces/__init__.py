"""Interfaces: the command line, the pytest plugin and the Python API."""
