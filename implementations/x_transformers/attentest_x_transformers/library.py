"""The import of x-transformers, without its warning about a deprecated part of torch."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from x_transformers import attend, x_transformers

__all__ = ["attend", "x_transformers"]
