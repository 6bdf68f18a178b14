"""Tells whether a Transformer implementation is right, and which mistake it looks like."""

from attentest.api import Report, check

__version__ = "0.1.0"

__all__ = ["Report", "check"]
