"""Tests whether a Transformer implementation is right, and names the likely cause of mistakes."""

from typing import TYPE_CHECKING, Any

from attentest.version import __version__

if TYPE_CHECKING:
    from attentest.interfaces.python import Report, adapted, check

__all__ = ["Report", "__version__", "adapted", "check"]


def __getattr__(name: str) -> Any:
    """Load the Python API at its first use: pytest imports this package in every project."""
    if name in __all__:
        from attentest.interfaces import python

        return getattr(python, name)
    raise AttributeError(f"module 'attentest' has no attribute {name!r}")
