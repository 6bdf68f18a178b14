"""Searches for the choices that explain a station: options one by one, and in combinations."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from math import prod

from attentest.analysis.identify.norms import (
    epsilon_of,
    options,
    short_epsilon,
    solved_epsilon,
    variations,
    with_epsilon,
    with_epsilons,
)
from attentest.analysis.identify.parts import LARGE, Part, bent, large_model, stilled
from attentest.analysis.identify.reach import ARITHMETICS, axes_of
from attentest.analysis.identify.station import Candidate, Station
from attentest_spec import Choices
from attentest_spec.parameters import learned_positions

PLACED = ("positional_encoding", "position_offset")
"""The choices about the encoding of positions, its arithmetic left out."""

MANY = 100
"""Combinations of options above which they are not all tried."""

CHEAP = {"optimiser": 2000, "rms_norm": 1000, "rotary": 2000, "mixture_of_experts": 1000}
"""The same for components whose reference takes no time."""

ROUNDS = 3
"""The number of times that the closest option is taken, where no single one fits."""

SILENCED = (
    ("self_attention", "cross_attention"),
    ("feed_forward",),
    ("self_attention", "cross_attention", "feed_forward"),
)
"""The sublayers that are silenced together, to measure what is left."""


def large(part: Part) -> list[Candidate]:
    """Return candidates for what a model adds to a token, leaving out outputs of large tokens.

    Where the numbers are large an epsilon hardly matters; it is solved for under the first one, and
    under those after it where that does not fit, in single precision either: its arithmetic is
    measured later.
    """
    station = Station.of(part.probe, large_model(part), part.large_inputs(), first=LARGE.stop)
    own = _largest(station, part)
    if station.fits(own[0][0]):
        return own
    other = _largest(station, bent(part))
    return other if other[0][1] < own[0][1] else own


def _largest(station: Station, part: Part) -> list[Candidate]:
    ranked = station.ranked(_of_a_token(part.choices))[:8]
    placed = [
        one
        for choices, _ in ranked
        for one in fixed(variations(choices, PLACED), replace(part, choices=choices))
    ]
    first, *rest = (choices for choices, _ in station.ranked(placed)[:8])
    first = with_epsilon(station, first, epsilon_of(first))
    coarse = {axis: "float32" for axis in ARITHMETICS if axis in axes_of(part.component)}
    if station.fits(first) or station.fits(first.but(**coarse)):
        return station.ranked([first])
    solved = [solved_epsilon(station, choices, epsilon_of(choices)) for choices in rest]
    closest = station.ranked([first, *solved])[0][0]
    return station.ranked([short_epsilon(station, closest, epsilon_of(closest))])


def _of_a_token(known: Choices) -> Iterator[Choices]:
    """Yield `known` with the options that large tokens show, for norms of each kind."""
    axes = ["embedding_scale", "norm_placement", "output", "logit_scale"]
    yield from variations(known, [*axes, "norm_variance", "norm_epsilon_place"])
    rms = known.but(norm_kind="rms", rms_bias=known.norm_bias)
    yield from (one for one in variations(rms, [*axes, "rms_weight"]) if one.rms_weight != "none")


def flips(station: Station, part: Part, axes: Collection[str]) -> list[Candidate]:
    """Return the choices known so far and all that differ from them in one of `axes`."""
    varied = (part.choices.but(**{axis: option}) for axis in axes for option in options(axis))
    return station.ranked(fixed([part.choices, *varied], part))


def searched(station: Station, part: Part, axes: Collection[str]) -> list[Candidate]:
    """Return the flips of `axes`, or where none of them fits and they are few, all combinations.

    Around a flip that fits its own flips are tried: another option may have no effect there. The
    epsilon of an RMS norm is solved for where no value in use fits.
    """
    ranked = flips(station, part, axes)
    if station.fits(ranked[0][0]):
        return flips(station, replace(part, choices=ranked[0][0]), axes)
    if prod(len(options(axis)) for axis in axes) > CHEAP.get(part.component, MANY):
        return ranked
    every = list(fixed(variations(part.choices, axes), part))
    ranked = station.ranked(every)
    if "rms_epsilon" not in axes or station.fits(ranked[0][0]):
        return ranked
    return station.ranked([*with_epsilons(station, every, "rms_epsilon"), *every])


def fixed(candidates: Iterator[Choices] | Collection[Choices], part: Part) -> Iterator[Choices]:
    """Leave out candidates that contradict the table of learned positions, or that there is none.

    The same holds for the weight of an RMS norm and the bias of a router. A learned table has a
    row for every one that its offset skips.
    """
    known = part.choices
    learned = learned_positions(known)
    return (
        one
        for one in candidates
        if learned_positions(one) == learned
        and (one.rms_weight == "none") == (known.rms_weight == "none")
        and (one.router_bias == "none") == (known.router_bias == "none")
        and (not learned or one.position_offset == known.position_offset)
    )


def silenced(part: Part, axes: Collection[str]) -> tuple[Station, list[Candidate]] | None:
    """Return a station where some sublayers give nothing but zero, and the candidates that fit.

    A mistake inside of a sublayer is not seen there, and all other choices are. None where the
    answers fit with no sublayer silenced, or there are none.
    """
    drawn = part.drawn()
    for names in SILENCED:
        still = stilled(drawn, *names)
        if all(values is drawn[name] for name, values in still.items()):
            continue
        station = Station.of(part.probe, still, part.inputs())
        known = part
        for _ in range(ROUNDS):
            ranked = searched(station, known, axes)
            if station.fits(ranked[0][0]):
                return station, flips(station, replace(part, choices=ranked[0][0]), axes)
            known = replace(part, choices=ranked[0][0])
    return None
