"""The components that code without a telling name may be, by its sizes and its sequences."""

import inspect
import sys
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from torch import nn

from attentest.targets.adapt.construction import construction, sizes_needed
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Attempt, Reading
from attentest.targets.adapt.rotary.adaptation import COMPONENT, named_rotary
from attentest_spec import COMPONENTS

_MATRICES: Mapping[str, tuple[int, float]] = {
    "multi_head_attention": (1, inf),
    "encoder_layer": (3, inf),
    "decoder_layer": (5, inf),
    "encoder": (3, inf),
    "decoder": (5, inf),
    "feed_forward": (2, 3),
    "layer_norm": (0, 0),
    "rms_norm": (0, 0),
    "positional_encoding": (0, 1),
    "embedding": (1, 2),
    "generator": (1, 1),
    "residual": (0, inf),
    "attention": (0, 0),
}
"""The fewest and the most matrices that a class of each component holds."""

_OF_FUNCTIONS = ("attention", "feed_forward", "layer_norm", "residual")
_OPTIONAL = frozenset(["max_length", "dropout", "source_pad", "target_pad"])
"""Sizes that a component may have and needs not."""

_ALONE = 3
"""The number of sequences of attention, which self-attention has as one."""


def other_components(thing: Any, reading: Reading, taken: str = "") -> list[Attempt]:
    """Return attempts at the components that `thing` may be, besides the one it is `taken` for."""
    if reading.component:
        return []
    made = thing if not isinstance(thing, nn.Module) else type(thing)
    found = [one for _, one in sorted(_scored(made, reading), key=lambda one: one[0])]
    found = [*[COMPONENT] * _is_turned_with(made), *found]
    return [Attempt(component=one) for one in found if one != taken]


def _is_turned_with(thing: Any) -> bool:
    """Say whether `thing` is a class whose file has rotary functions."""
    if not (inspect.isclass(thing) and thing.__module__ in sys.modules):
        return False
    near = vars(sys.modules[thing.__module__]).items()
    return any(inspect.isfunction(one) and named_rotary(name) for name, one in near)


def _scored(thing: Any, reading: Reading) -> Iterator[tuple[int, str]]:
    """Yield the components of as many sequences and matrices, with how many sizes are missing."""
    if not inspect.isclass(thing):
        count = _sequences(thing)
        yield from ((0, one) for one in _OF_FUNCTIONS if _takes(one, count))
        return
    count = _sequences(getattr(thing, "forward", thing.__call__)) - 1
    for component, (least, most) in _MATRICES.items():
        if not _takes(component, count):
            continue
        try:
            found = construction(thing, component, reading)
            with undisturbed():
                built = found(SIZES)
        except Exception:  # code that a user wrote may raise anything
            continue
        known, needed = found.known - _OPTIONAL, sizes_needed(component)
        if known <= needed and least <= _matrices(built) <= most:
            yield len(needed - known), component


def _matrices(built: Any) -> int:
    held = built.parameters() if isinstance(built, nn.Module) else ()
    return sum(one.dim() > 1 for one in held)


def _sequences(call: Any) -> int:
    """Return how many arguments have to be given, without masks; 0 where nothing says it."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return 0
    return len(
        [
            one
            for one in parameters
            if one.default is one.empty
            and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
            and "mask" not in one.name.lower()
        ]
    )


def _takes(component: str, count: int) -> bool:
    """Say whether `component` can be called with `count` sequences."""
    inputs = [one for one in COMPONENTS[component].inputs if "mask" not in one]
    return len(inputs) == count or (component == "multi_head_attention" and 0 < count <= _ALONE)
