"""Imports x-transformers, which warns of a part of torch that it still uses."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from x_transformers import attend, x_transformers

__all__ = ["attend", "x_transformers"]
