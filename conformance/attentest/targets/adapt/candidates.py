"""The components that code without a telling name may be, by its sizes and its sequences."""

import inspect
from collections.abc import Iterator
from typing import Any

from torch import nn

from attentest.targets.adapt.construction import construction, sizes_needed
from attentest.targets.adapt.reading import Attempt, Reading, Unclear
from attentest_spec import COMPONENTS

_OF_CLASSES = (
    "multi_head_attention",
    "encoder_layer",
    "decoder_layer",
    "encoder",
    "decoder",
    "feed_forward",
    "layer_norm",
    "rms_norm",
    "positional_encoding",
    "embedding",
    "generator",
    "residual",
    "attention",
)
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
    found = sorted(_scored(made, reading), key=lambda one: one[0])
    return [Attempt(component=one) for _, one in found if one != taken]


def _scored(thing: Any, reading: Reading) -> Iterator[tuple[int, str]]:
    """Yield the components of as many sequences, with how many sizes are missing or too many."""
    if not inspect.isclass(thing):
        count = _sequences(thing)
        yield from ((0, one) for one in _OF_FUNCTIONS if _takes(one, count))
        return
    count = _sequences(getattr(thing, "forward", thing.__call__)) - 1
    for component in _OF_CLASSES:
        if not _takes(component, count):
            continue
        try:
            known = construction(thing, component, reading).known - _OPTIONAL
        except (Unclear, ValueError):
            continue
        needed = sizes_needed(component)
        yield 2 * len(needed - known) + len(known - needed), component


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
