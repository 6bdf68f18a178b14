"""A norm whose name says no kind, such as "norm", is of the kind that its numbers show."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.components import words_of
from attentest.targets.adapt.parameters.behaviour import Fired
from attentest.targets.adapt.parameters.norm_kinds import RMS, is_rms
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Reading, Uncovered
from attentest_spec import Backend
from attentest_spec.torch import to_array

Read = Callable[[Any, Reading], Backend]
"""Returns the backend of code, or raises a question."""


def says_no_kind(name: str) -> bool:
    """Say whether `name` is that of a norm, and of no kind of norms."""
    *before, last = words_of(name) or [""]
    return last in ("norm", "normalize", "normalise") and not {*before} & {*_KINDS}


_KINDS = ("layer", "ln", "layernorm")
"""Words of the name of a norm that promise a layer norm."""


def of_its_numbers(read: Read, name: str) -> Read:
    """Return `read` for what is called `name`: it reads an RMS norm where the numbers say so."""

    def reading_of_kind(thing: Any, reading: Reading) -> Backend:
        try:
            return read(thing, reading)
        except Uncovered as question:
            own = name or getattr(thing, "__name__", type(thing).__name__)
            said = "layer" in f"{getattr(thing, '__doc__', '') or ''}".lower()
            if reading.component or RMS not in question.text or said or not says_no_kind(own):
                raise
            return read(thing, replace(reading, component="rms_norm"))

    return reading_of_kind


def rms_function(name: str, probe: Probe, adapter: Adapter) -> str:
    """Recognise a function of rows alone that divides them by the root of their mean square."""
    is_norm = adapter.component == "layer_norm" and not isinstance(probe.built, nn.Module)
    if not is_norm or not says_no_kind(name):
        return ""
    given = probe.given(adapter)
    output = probe.called(adapter, given)
    rows = tuple(to_array(one) for one in given.values())
    if not isinstance(output, Tensor) or not is_rms(Fired("", rows, to_array(output))):
        return ""
    return f"it {RMS}, which --as rms_norm judges"


def of_each_number(probe: Probe, adapter: Adapter) -> str:
    """Recognise code that works on each number by itself, as a dynamic tanh does."""
    if adapter.component not in ("layer_norm", "rms_norm"):
        return ""
    given = probe.given(adapter)
    x: Tensor = given["x"]
    changed = x.clone()
    changed.view(-1)[0] += 1.0
    answers = (probe.called(adapter, {**given, "x": one}) for one in (x, changed))
    first, second = (one.flatten()[1:] if isinstance(one, Tensor) else None for one in answers)
    if first is None or second is None or not torch.equal(first, second):
        return ""
    return (
        "it works on each number by itself, whatever the others are: that is no norm, "
        "or its division is missing"
    )
