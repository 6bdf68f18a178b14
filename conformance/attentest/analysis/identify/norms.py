"""Measurement of norms: their placement, their formula, their epsilon."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product, takewhile

import numpy as np

from attentest.analysis.identify.numbers import shortest, solve
from attentest.analysis.identify.parts import (
    Part,
    model_of_all_scales,
    norms_alone,
    rows_of_all_scales,
)
from attentest.analysis.identify.station import Candidate, Station
from attentest.analysis.identify.structure import OFFSETS
from attentest_spec import CHOICES, Choices
from attentest_spec.choices import Value

FORMULA = ("norm_epsilon_place", "norm_variance", "norm_epsilon")
OF_RMS = ("rms_epsilon_place", "rms_epsilon", "rms_weight")

_OF_SINGLE, OF_DOUBLE = (float(np.finfo(one).eps) for one in (np.float32, np.float64))
EPSILONS = (1e-5, 1e-6, 1e-12, 1e-8, 1e-7, 1e-9, 1e-3, _OF_SINGLE, OF_DOUBLE, 0.0)
"""Values in use; they are tried before one is solved for."""

NUMBERS: Mapping[str, Sequence[Value]] = {
    "norm_epsilon": EPSILONS,
    "rms_epsilon": EPSILONS,
    "position_offset": OFFSETS,
    "adam_beta1": ("0.9", 0.8, 0.95),
    "adam_beta2": ("0.98", 0.999, 0.99, 0.95),
    "adam_epsilon": ("1e-9", 1e-8, 1e-6, 1e-7),
    "clip_epsilon": ("none", 1e-6, 1e-8, 1e-5, 1e-7),
    "routing_scale": ("none", 2.5, 16.0, 1.8),
    "rotary_base": ("10000", 5e5, 1e6, 1e5),
    "rotary_width": ("whole", 0.5, 0.25, 0.75),
    "rotary_magnitude": ("as-scaling", 1.0),
}
"""Choices that are numbers, and the values that are tried."""

FAR = 100.0
"""By how many tolerances of the coarsest arithmetic an answer differs that none explains."""

_GRID = [float(value) for value in np.logspace(-30, 3, 34)]


def options(axis: str) -> list[Value]:
    """Return the options of a choice by their names; of a number, the values in use."""
    if axis in NUMBERS:
        return list(NUMBERS[axis])
    return [option.name for option in CHOICES[axis].options]


def variations(base: Choices, axes: Collection[str]) -> Iterator[Choices]:
    """Yield `base` with the options of `axes` in every combination, its own first."""
    yield base
    for values in product(*(options(axis) for axis in axes)):
        yield base.but(**dict(zip(axes, values, strict=True)))


def norm_station(part: Part) -> Station:
    """Return the answer of a part to rows of all scales with nothing but its norms active."""
    if part.component == "model":
        return Station.of(part.probe, *model_of_all_scales(part))
    inputs = part.inputs(rows=rows_of_all_scales(part))
    return Station.of(part.probe, norms_alone(part), inputs)


def norm_candidates(
    station: Station, base: Choices, axes: Collection[str], *, solve: bool = True
) -> list[Candidate]:
    """Return candidates for `axes`, the closest first; `base` holds the other choices.

    To `solve` is to find the epsilon, under each combination of the others, where no value in use
    fits.
    """
    ranked = station.ranked(variations(base, axes))
    if not solve or "norm_epsilon" not in axes or station.fits(ranked[0][0]):
        return ranked
    others = variations(base, [axis for axis in axes if axis != "norm_epsilon"])
    return station.ranked([*with_epsilons(station, others), *(one for one, _ in ranked)])


def rms_candidates(
    station: Station, base: Choices, axes: Collection[str], *, solve: bool
) -> list[Candidate]:
    """Return candidates for `axes` if the norms of a layer are RMS norms, the closest first.

    They have a bias where the norms of `base` have one. Those that compute in single precision are
    tried where no others fit. To `solve` is to find the epsilon where no value in use fits.
    """
    rms = base.but(norm_kind="rms", rms_bias=base.norm_bias)
    found: list[list[Candidate]] = []
    for arithmetic in ("as-computed", "float32"):
        every = variations(rms.but(rms_arithmetic=arithmetic), axes)
        found.append(station.ranked(one for one in every if one.rms_weight != "none"))
        if station.fits(found[-1][0][0]):
            return found[-1]
    for ranked in tuple(found) if solve and "rms_epsilon" in axes else ():
        found.append(_solved(station, ranked))
        closest, difference = found[-1][0]
        if station.fits(closest):
            return found[-1]
        if difference > FAR * station.tolerance(closest.but(rms_arithmetic="float32")):
            break  # rounding is less than what is left
    return min(found, key=lambda ranked: ranked[0][1])


def _solved(station: Station, ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates `ranked` with the epsilon of RMS norms that comes closest to each."""
    alike = dict.fromkeys(one.but(rms_epsilon=0.0) for one, _ in ranked)
    ways = (solved_epsilon(station, one, "rms_epsilon") for one in alike)
    solved = [one for one, _ in station.ranked(ways)]
    fitting = list(takewhile(station.fits, solved))
    short = [short_epsilon(station, one, "rms_epsilon") for one in fitting or solved[:1]]
    return station.ranked([*short, *solved[len(short) :], *(one for one, _ in ranked)])


def epsilon_of(choices: Choices) -> str:
    """Return the choice of the epsilon of norms of the kind that `choices` have."""
    return "rms_epsilon" if choices.norm_kind == "rms" else "norm_epsilon"


def with_epsilons(
    station: Station, candidates: Iterable[Choices], axis: str = "norm_epsilon"
) -> list[Choices]:
    """Return each of `candidates` with the epsilon of `axis` that comes closest."""
    alike = dict.fromkeys(one.but(**{axis: 0.0}) for one in candidates)
    return [with_epsilon(station, one, axis) for one in alike]


def with_epsilon(station: Station, choices: Choices, axis: str = "norm_epsilon") -> Choices:
    """Return `choices` with the epsilon that comes closest, the shortest of those that fit."""
    return short_epsilon(station, solved_epsilon(station, choices, axis), axis)


def solved_epsilon(station: Station, choices: Choices, axis: str = "norm_epsilon") -> Choices:
    """Return `choices` with the epsilon that comes closest, in all its digits."""
    value = solve(station, lambda one: choices.but(**{axis: one}), _GRID)
    return choices.but(**{axis: value})


def short_epsilon(station: Station, choices: Choices, axis: str = "norm_epsilon") -> Choices:
    """Return `choices` with the shortest epsilon near theirs that fits, theirs if none does."""
    tolerance = station.tolerance(choices)  # of numbers near this one too
    short = shortest(
        float(choices[axis]),
        lambda one: station.distance(choices.but(**{axis: one})) <= tolerance,
    )
    return choices if short is None else choices.but(**{axis: short})
