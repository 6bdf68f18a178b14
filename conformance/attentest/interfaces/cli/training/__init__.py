"""The commands that train models."""
