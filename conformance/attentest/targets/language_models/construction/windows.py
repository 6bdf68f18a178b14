"""The window that a decoder-only model is built with, by the name of its argument."""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import WINDOW
from attentest.targets.adapt.objects.settings import fields_read_of, keys_read_of
from attentest.targets.models.size_names import sizes_named

LONGEST = 1024
"""The length up to which a model without an argument for it is tried."""

WINDOWED = "sizes.window"
"""The expression of a window."""

_OF_ATTENTION = re.compile(r"slid|att|local")


def is_window(name: str, default: Any, held: Sequence[str]) -> bool:
    """Say whether the argument `name` is a window of attention that texts may be longer than.

    A name that says no attention is that of a greatest length where none of the names `held`, all
    without capitals and underscores, says one.
    """
    wide = default is inspect.Parameter.empty or (type(default) is int and 1 < default <= LONGEST)
    if name not in WINDOW or not wide:
        return False
    lengths = ("max_length" in sizes_named(one, held, "") for one in held if one != name)
    return bool(_OF_ATTENTION.search(name)) or any(lengths)


def of_window(name: str, kept: Mapping[str, Any]) -> Any:
    """Return the value of the field `name` where it is a window that settings hold, or none."""
    empty = inspect.Parameter.empty
    return kept.get(name, empty) if squashed(name) in WINDOW else empty


def fields_beside_window(top: Any, own: str, name: str) -> frozenset[str]:
    """Return all fields that `top` reads of its settings `own`, none where `name` is no window.

    A greatest length that is read later says that the window is none.
    """
    if squashed(name) not in WINDOW:
        return frozenset()
    return keys_read_of(top, own) | fields_read_of(top, own)
