"""Switches that are on, and with which code has what the spec has no place for.

With one of them off code may be judged that is not judged as it is built by default: with as many
heads of keys as of queries, or without parameters of its own.
"""

import inspect
from collections.abc import Iterator
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import KEY_HEADS, words
from attentest.targets.adapt.objects.settings import settings_near
from attentest.targets.adapt.reading import Attempt, Reading, Unclear, Uncovered
from attentest.targets.signatures import constructor_arguments

_ONE_HEAD = words("multiquery usemultiquery multiqueryattention usemultiqueryattention mqa usemqa")
"""Names of a switch that is on where all heads share one of keys and values."""


_MAY_BE_WRONG = "the reading may be wrong"
"""Words of a question on parameters or numbers, and not on how code is built or called."""

_MOST = 3
"""The largest number of switches that are tried."""


def with_switches_off(thing: Any, reading: Reading, question: Unclear) -> Iterator[Attempt]:
    """Yield attempts at what answers a `question`: one switch of a constructor off in each."""
    if not inspect.isclass(thing):
        return
    yield from _with_own_key_heads(thing, reading)
    if _MAY_BE_WRONG in question.text or isinstance(question, Uncovered):
        made = constructor_arguments(thing).items()
        on: dict[str, bool | None] = {own: False for own, one in made if one.default is True}
        on |= {own: None for own, one in made if _is_class_of_norms(one.default)}
        left = [(own, off) for own, off in on.items() if own not in reading.given]
        yield from (Attempt(given={own: off}) for own, off in left[:_MOST])


def _is_class_of_norms(default: object) -> bool:
    """Say whether a default is a class of norms, which no norms are made of where it is None."""
    is_part = inspect.isclass(default) and issubclass(default, nn.Module)
    return is_part and squashed(default.__name__).endswith("norm")  # type: ignore[attr-defined]


def _with_own_key_heads(thing: Any, reading: Reading) -> Iterator[Attempt]:
    """Yield attempts at a switch that is off, alone and with no number of heads of keys."""
    made = dict(constructor_arguments(thing))
    for settings in settings_near(thing).values():
        made |= constructor_arguments(settings)
    switches = [own for own, one in made.items() if squashed(own) in _ONE_HEAD and one.default]
    if len(switches) != 1 or switches[0] in reading.given:
        return
    yield Attempt(given={switches[0]: False})
    for own, one in made.items():
        if squashed(own) in KEY_HEADS and one.default is None and own not in reading.given:
            yield Attempt(given={switches[0]: False, own: None})
