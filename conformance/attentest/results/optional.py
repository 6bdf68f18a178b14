"""The optional libraries of the suite: those of the extra `report`, and of others."""

from importlib import import_module
from typing import Any


class Missing(Exception):
    """A library of the extra is not installed; its text says how to get it."""


def needed(name: str, extra: str = "report") -> Any:
    """Return the module `name` of `extra`; raise :class:`Missing` where it is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as failure:
        library = (failure.name or name).partition(".")[0]  # or one that it needs itself
        raise Missing(
            f'This needs {library}, which is not installed: pip install "attentest[{extra}]"'
        ) from failure
