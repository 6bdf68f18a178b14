"""Sizes of an encoder by trial: of arguments whose names do not say them, and of its code."""
