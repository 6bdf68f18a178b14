"""The libraries that a report is made with: an extra of the distribution, told where missing."""

from importlib import import_module
from typing import Any


class Missing(Exception):
    """A library of the extra is not installed; its text says how to get it."""


def needed(name: str) -> Any:
    """Return the module `name`; raise :class:`Missing` where it is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as failure:
        library = name.partition(".")[0]
        raise Missing(
            f'A report needs {library}, which is not installed: pip install "attentest[report]"'
        ) from failure
