"""Attention with heads of its own: by a number that it is built with, or by its projections."""

import inspect
from collections.abc import Callable
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import construction
from attentest.targets.adapt.names import ROLES
from attentest.targets.adapt.names import SIZES as NAMES
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.signatures import constructor_arguments


def has_heads(thing: Any, reading: Reading, call: Callable[..., Any] | None) -> bool:
    """Say whether the attention `thing` projects what it gets, or is built with a number of heads.

    A module that is called with q, k and v, holds no parameters and needs no number of heads has
    those of its inputs. `call` is a method that is called instead of the module.
    """
    if call is None and _projects_itself(thing):
        return True
    if "heads" not in sizes_said(thing, reading):
        return False
    by_default = any(
        squashed(own) in NAMES["heads"] and one.default is None
        for own, one in constructor_arguments(thing).items()
    )
    is_bare = call is None and by_default and "heads" not in reading.arguments
    return not (is_bare and _holds_nothing(thing, reading))


def _projects_itself(thing: Any) -> bool:
    """Say whether the class `thing` is a module that is called with other than q, k and v."""
    if not issubclass(thing, nn.Module):
        return False
    called = {squashed(one) for one in inspect.signature(thing.forward).parameters}
    return any(called.isdisjoint(ROLES[role]) for role in ("query", "key", "value"))


def sizes_said(thing: Callable[..., Any], reading: Reading) -> frozenset[str]:
    """Return the sizes that a class can be built with, as far as its constructor says."""
    try:
        return construction(thing, "multi_head_attention", reading).known
    except (Unclear, ValueError):
        return frozenset()


def _holds_nothing(thing: Callable[..., Any], reading: Reading) -> bool:
    """Say whether the class `thing` makes a module without parameters."""
    try:
        with undisturbed():
            made = construction(thing, "attention", reading)(SIZES)
    except Exception:  # code that a user wrote may raise anything
        return False
    return isinstance(made, nn.Module) and next(made.parameters(), None) is None
