"""Search for the choices inside attention that only code of later models makes."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from attentest.analysis.identify.parts import Part
from attentest.analysis.identify.station import Station
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Probe
from attentest_spec import Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.contract import Input

HEAD = 8
"""The width of a head: with four pairs of columns the base and the kind of pairs show."""

LENGTH = 6
"""The length of the sequence: distances of several steps show a base and a slope."""

BASES: tuple[Value, ...] = ("10000", 500_000.0, 1_000_000.0)
"""The bases of rotary positions that are tried."""

TURNED = ("attention_rotary", "rotary_pairs", "rotary_base", "rotary_arithmetic")
"""The choices that attention shows whose queries and keys are turned."""


def wide_sizes(sizes: Sizes) -> Sizes:
    """Return `sizes` with heads that have several pairs of columns."""
    return sizes.but(d_model=HEAD * sizes.heads)


def several_steps(part: Part) -> tuple[Input, ...]:
    """Return inputs of :data:`LENGTH` steps; the target of a model is as long as its source."""
    first, *rest = part.inputs(length=LENGTH)
    if part.component == "model" and isinstance(first, np.ndarray):
        return first, first[::-1]
    return first, *rest


def attending(probe: Probe, base: Choices) -> Choices | None:
    """Return the choices that explain the attention in `probe`, None where none do.

    `base` are those that the parameters show, and, of a layer, those of its norms and its
    activation. Without a mask all keys are kept.
    """
    part = Part(probe.component, probe, base)
    try:
        station = Station.of(probe, part.drawn(), several_steps(part))
    except (Absent, BackendError, Violation):
        return None
    order = ("built-in", "by-mask") if probe.component == "multi_head_attention" else ("by-mask",)
    return next((one for one in _candidates(base, order) if station.fits(one)), None)


def _candidates(base: Choices, order: Sequence[str]) -> Iterator[Choices]:
    """Yield choices with positions and bias inside attention, exact arithmetic first.

    `order` are the ways to hide later keys: a layer that does so is given the mask of that. A scale
    is not among the choices: one that is missing is the commonest mistake.
    """
    turned = base.but(attention_rotary="query-and-key")
    for arithmetic, pairs, number, causality in product(
        ("as-computed", "float32"), ("halves", "adjacent"), BASES, order
    ):
        yield turned.but(
            rotary_arithmetic=arithmetic,
            rotary_pairs=pairs,
            rotary_base=number,
            attention_causality=causality,
        )
    for bias, causality in product(("alibi", "alibi-geometric"), order):
        yield base.but(relative_bias=bias, attention_causality=causality)
