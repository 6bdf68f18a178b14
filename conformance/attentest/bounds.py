"""What a bound is worked out from: how a part computes, and inputs a rounding away."""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np

from attentest.subject import Probe
from attentest_spec import Choices
from attentest_spec.components import inside
from attentest_spec.contract import Input

NUDGE = 2.0**-24
"""Relative change that measures amplification: far above float64's rounding, far below 1."""


def arithmetic(probe: Probe, choices: Choices | None = None) -> str:
    """Return the coarsest precision inside a part, under the declared choices unless given others.

    A softmax in float32 rounds what is float64 around it.
    """
    single = (choices or probe.subject.choices).softmax_arithmetic == "float32"
    rounds = single and "attention" in inside(probe.component) and probe.precision == "float64"
    return "float32" if rounds else probe.precision


def terms(probe: Probe, inputs: tuple[Input, ...]) -> int:
    """Return how many roundings add up along the longest path through the component."""
    width, inner, layers = probe.sizes.d_model, probe.sizes.d_ff, probe.sizes.layers
    length = max(
        (max(one.shape[1:] or (1,)) for one in inputs if isinstance(one, np.ndarray)), default=1
    )
    attention = 2 * width + length
    whole = {
        "attention": width + length,
        "multi_head_attention": width + attention,
        "feed_forward": width + inner,
        "encoder_layer": attention + inner + 4 * width,
        "encoder": layers * (attention + inner + 4 * width),
        "decoder_layer": 2 * attention + inner + 6 * width,
        "decoder": layers * (2 * attention + inner + 6 * width),
        "model": layers * (3 * attention + 2 * inner + 10 * width),
    }
    return whole.get(probe.component, width)


def nearby(
    probe: Probe, inputs: tuple[Input, ...], *, seeds: Iterable[int]
) -> Iterator[tuple[Probe, tuple[Input, ...]]]:
    """Yield the probe and its inputs with the last digits of all numbers changed."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        near_by = copy(probe)
        near_by.parameters = {name: _nudged(one, rng) for name, one in probe.parameters.items()}
        yield near_by, tuple(_nudged(value, rng) for value in inputs)


def _nudged(value: Any, rng: np.random.Generator) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    return value * (1.0 + NUDGE * rng.choice((-1.0, 1.0), size=value.shape))
