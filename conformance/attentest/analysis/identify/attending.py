"""Search for the choices inside attention that only code of later models makes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, product

import numpy as np

from attentest.analysis.identify.norms import EPSILONS, FAR, with_epsilon
from attentest.analysis.identify.numbers import Under, shortest, solve
from attentest.analysis.identify.parts import Part
from attentest.analysis.identify.station import Station
from attentest.analysis.identify.structure import WEIGHTED, has_buckets
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Probe
from attentest_spec import Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.contract import Input

HEAD, WIDE_HEAD = 8, 16
"""The width of a head: with four pairs of columns the base and the kind of pairs show.

A quarter of the wider one has two pairs.
"""

ATTENTION = "multi_head_attention"
"""The component whose own numbers show how later keys are hidden, and a cap of scores."""

LENGTH = 6
"""The length of the sequence: distances of several steps show a base and a slope."""

BASES: tuple[Value, ...] = ("10000", 500_000.0, 1_000_000.0)
"""The bases of rotary positions that are tried."""

PARTS: tuple[Value, ...] = (0.5, 0.25, 0.75)
"""The parts of a head that are tried where not all of it is turned."""

TURNED = ("attention_rotary", "rotary_pairs", "rotary_base", "rotary_arithmetic")
"""The choices that attention shows whose queries and keys are turned."""

_NEAR = 0.1
"""A difference that no rounding makes, not even in half precision."""

_FEW = 2
"""The number of readings for which an epsilon or a cap is solved."""

_CAPS = [float(value) for value in np.logspace(0, 3, 31)]
"""The caps of scores between which one is solved for."""

_EPSILONS: tuple[Value, ...] = (1e-6, 1e-5, *(one for one in EPSILONS if one not in (1e-6, 1e-5)))
"""The epsilons of the norms of queries and keys that are tried."""

_AS_CLOSE = 4.0
"""By how much an epsilon may be further from the answer than the closest, where both round."""

_SINGLE: Mapping[str, Value] = {"rotary_arithmetic": "float32", "rms_arithmetic": "float32"}
"""The arithmetic of the largest tolerance."""

_MANY = 16
"""The number of choices that may be near and not fit before the limit is `_OUTSIDE`."""

_OUTSIDE = 10.0
"""The multiple of a tolerance that no other choices have."""

_SMALL = 1e-3
"""The scale of queries and keys at which epsilons in use show, in single precision as well."""

_OF_SCORES = re.compile(r"(^|\.)(query|key)\.(weight|bias)$")
"""The parameters that queries and keys are projected by."""


def wide_sizes(sizes: Sizes, head: int = HEAD) -> Sizes:
    """Return `sizes` with heads that have several pairs of columns."""
    return sizes.but(d_model=head * sizes.heads)


def several_steps(part: Part) -> tuple[Input, ...]:
    """Return inputs of :data:`LENGTH` steps; the target of a model is as long as its source."""
    first, *rest = part.inputs(length=LENGTH)
    if part.component == "model" and isinstance(first, np.ndarray):
        return first, first[::-1]
    return first, *rest


def attending(probe: Probe, base: Choices, parts: Sequence[Value] = ("whole",)) -> Choices | None:
    """Return the choices that explain the attention in `probe`, None where none do.

    `base` are those that the parameters show, and, of a layer, those of its norms and its
    activation; `parts` of the columns of a head may be turned. Without a mask all keys are kept.
    """
    part = Part(probe.component, probe, base)
    try:
        station = Station.of(probe, part.drawn(), several_steps(part))
        small = _small(part)
    except (Absent, BackendError, Violation):
        return None
    order = ("built-in", "by-mask") if probe.component == ATTENTION else ("by-mask",)
    found = (one for start in _placed(base) for one in _candidates(start, order, parts))
    near: dict[Choices, float] = {}
    exact = (fine for one in _near(station, found, near) for fine in _closest(small, one))
    solved = (fine for one in _first(near) for fine in _solved(small, one))
    capped = _capped(station, small, base, order) if probe.component == ATTENTION else ()
    fitting = _Fitting(station)
    ways = chain(exact, solved, capped)
    return next((one for one in ways if fitting(one) and _fits_small(small, one)), None)


def _fits_small(small: Station, choices: Choices) -> bool:
    """Return whether small queries and keys fit as well, where norms of them have an epsilon."""
    return choices.query_key_norm == "none" or small.fits(choices)


def _near(
    station: Station, candidates: Iterable[Choices], near: dict[Choices, float]
) -> Iterator[Choices]:
    """Yield the candidates whose answers are close, and store their differences in `near`.

    A tolerance takes longer.
    """
    for one in candidates:
        if (difference := station.distance(one)) <= _NEAR:
            near[one] = difference
            yield one


def _first(near: Mapping[Choices, float]) -> Iterator[Choices]:
    """Yield the few that are closest, once all are known."""
    yield from sorted(near, key=lambda one: near[one])[:_FEW]


class _Fitting:
    """Says whether choices explain the answer of a station.

    A tolerance costs many evaluations of the reference; those of choices that are near differ
    little, so that what is far outside of the first one is far outside of its own. Single precision
    leaves hundreds of choices not far outside: once some do not fit, the limit is nearer.
    """

    def __init__(self, station: Station) -> None:
        self.station = station
        self.tolerance: float | None = None
        self.failed = 0

    def __call__(self, choices: Choices) -> bool:
        """Return whether the answer is the reference's under `choices`, up to rounding."""
        if self.tolerance is None:
            self.tolerance = self.station.tolerance(choices.but(**_SINGLE))
        limit = FAR if self.failed < _MANY else _OUTSIDE
        if self.station.distance(choices) > limit * self.tolerance:
            return False
        fits = self.station.fits(choices)
        self.failed += not fits
        return fits


def _capped(
    station: Station, small: Station, base: Choices, order: Sequence[str]
) -> Iterator[Choices]:
    """Yield choices with the soft cap of scores that comes closest, where it changes little."""
    starts = _placed(base)
    plain = (one.but(attention_causality=way) for one in starts for way in order)
    every = chain(plain, *(_candidates(one, order, ("whole",)) for one in starts))
    for near, difference in station.ranked(every)[:_FEW]:
        if difference > _NEAR:
            return
        capped = _with_cap(station, near)
        for one in chain(_closest(small, capped), _solved(small, capped)):
            under = partial(_under_cap, one)
            fits = partial(_fits, station, under, station.tolerance(one))
            cap = float(_with_cap(station, one).score_cap)
            yield under(shortest(cap, fits) or cap)


def _with_cap(station: Station, base: Choices) -> Choices:
    """Return `base` with the soft cap of scores that comes closest, in all its digits."""
    under = partial(_under_cap, base)
    return under(solve(station, under, _CAPS))


def _under_cap(base: Choices, cap: float) -> Choices:
    return base.but(score_cap=cap)


def _fits(station: Station, under: Under, tolerance: float, number: float) -> bool:
    return station.distance(under(number)) <= tolerance


def _small(part: Part) -> Station:
    """Return the answer of attention to small queries and keys, where epsilons of norms show."""
    scaled = {
        name: values * (_SMALL if _OF_SCORES.search(name) else 1.0)
        for name, values in part.drawn().items()
    }
    return Station.of(part.probe, scaled, several_steps(part))


def _placed(base: Choices) -> list[Choices]:
    """Return `base` with each weight and place of norms of queries and keys, as its own allow.

    Where it has none, they may have been normalised without a weight.
    """
    if base.query_key_norm not in WEIGHTED:
        return [base, base.but(query_key_norm="per-head", rms_weight="none")]
    options = product(("weight", "one-plus-weight"), ("before-rotation", "after-rotation"))
    return [base.but(rms_weight=one, query_key_norm_place=place) for one, place in options]


def normalised(base: Choices) -> list[Choices]:
    """Return `base` with each epsilon and arithmetic of norms of queries and keys with weights."""
    if base.query_key_norm not in WEIGHTED:
        return [base]
    options = product(("as-computed", "float32"), _EPSILONS)
    return [base.but(rms_arithmetic=one, rms_epsilon=epsilon) for one, epsilon in options]


def _closest(small: Station, base: Choices) -> Iterator[Choices]:
    """Yield `base` with each arithmetic of norms of queries and keys, and its closest epsilons."""
    for alike in _arithmetics(base):
        least = min(map(small.distance, alike))
        yield from (one for one in alike if small.distance(one) <= _AS_CLOSE * least)


def _solved(small: Station, base: Choices) -> Iterator[Choices]:
    """Yield the same with epsilons that are not among those in use."""
    if base.query_key_norm in WEIGHTED:
        yield from (with_epsilon(small, first, "rms_epsilon") for first, *_ in _arithmetics(base))


def _arithmetics(base: Choices) -> list[list[Choices]]:
    """Return :func:`normalised` choices, a list for each arithmetic."""
    return [list(one) for _, one in groupby(normalised(base), lambda one: one.rms_arithmetic)]


def bucket_options(
    order: Sequence[Value] = ("built-in", "by-mask"),
) -> Iterator[Mapping[str, Value]]:
    """Yield the choices of attention with trained numbers for distances; T5 has no scale."""
    scales: tuple[Value, ...] = ("inverse-sqrt-e", 1.0)
    for scale, kind, causality in product(scales, ("buckets", "buckets-of-the-past"), order):
        yield {"relative_bias": kind, "score_scale": scale, "attention_causality": causality}


def _candidates(base: Choices, order: Sequence[str], parts: Sequence[Value]) -> Iterator[Choices]:
    """Yield choices with positions and bias inside attention, exact arithmetic first.

    `order` are the ways to hide later keys: a layer that does so is given the mask of that. A scale
    is not among the choices: one that is missing is the commonest mistake, unless distances have
    trained numbers, as in T5, which has none.
    """
    if has_buckets(base):
        yield from (base.but(**one) for one in bucket_options(order))
        return
    if base.query_key_norm in WEIGHTED and base.query_key_norm_place == "before-rotation":
        yield from (base.but(attention_causality=one) for one in order)
    turned = base.but(attention_rotary="query-and-key")
    for arithmetic, pairs, number, causality, part in product(
        ("as-computed", "float32"), ("halves", "adjacent"), BASES, order, parts
    ):
        yield turned.but(
            rotary_arithmetic=arithmetic,
            rotary_pairs=pairs,
            rotary_base=number,
            attention_causality=causality,
            rotary_width=part,
        )
    for bias, causality in product(("alibi", "alibi-geometric"), order):
        yield base.but(relative_bias=bias, attention_causality=causality)
