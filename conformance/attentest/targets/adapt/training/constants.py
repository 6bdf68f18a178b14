"""Schedules whose sizes are constants of their module, as short training scripts have them."""

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.training.schedule_names import last_rates, sizes_in


def with_constants(function: Callable[..., Any], **constants: Any) -> Callable[..., Any]:
    """Return `function` with other values for constants of its module."""
    own: Any = function
    space = {**own.__globals__, **constants}
    return FunctionType(own.__code__, space, own.__name__, own.__defaults__, own.__closure__)


SOURCE = ("from types import FunctionType", "", "", *inspect.getsource(with_constants).splitlines())
"""The lines that define :func:`with_constants` in code that needs no suite."""


def constants_of(thing: Any, reading: Reading) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the constants that carry sizes, each with its size, and those of the last rate.

    Both are empty where `thing` is no plain function, or none of them is the length of the warm-up.
    """
    if not isinstance(thing, FunctionType):
        return {}, ()
    held: Mapping[str, Any] = thing.__globals__
    used = [name for name in thing.__code__.co_names if _is_number(held.get(name))]
    sizes = sizes_in(used, reading)
    if "warmup" not in sizes.values():
        return {}, ()
    return sizes, last_rates(used, reading)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
