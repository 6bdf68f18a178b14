"""Tells whether a Transformer implementation is right, and which mistake it looks like."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attentest.api import Report, adapted, check

__version__ = "0.1.0"

__all__ = ["Report", "adapted", "check"]


def __getattr__(name: str) -> Any:
    """Load the Python door at its first use: pytest imports this package in every project."""
    if name in __all__:
        from attentest import api

        return getattr(api, name)
    raise AttributeError(f"module 'attentest' has no attribute {name!r}")
