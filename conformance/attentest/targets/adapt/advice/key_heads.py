"""Switches by which code has as many heads of keys as of queries: fewer may be packed, or fixed."""

import inspect
from collections.abc import Iterator
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import KEY_HEADS, words
from attentest.targets.adapt.objects.settings import settings_near
from attentest.targets.adapt.reading import Attempt, Reading
from attentest.targets.signatures import constructor_arguments

_ONE_HEAD = words("multiquery usemultiquery multiqueryattention usemultiqueryattention mqa usemqa")
"""Names of a switch that is on where all heads share one of keys and values."""


def with_own_key_heads(thing: Any, reading: Reading) -> Iterator[Attempt]:
    """Yield attempts at a switch that is off, alone and with no number of heads of keys."""
    if not inspect.isclass(thing):
        return
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
