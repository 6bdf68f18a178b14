"""The choices of scores: scale, cap, norms and turns of queries and keys, the window."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import inf, sqrt

import numpy as np

from attentest.analysis.identify.language_stations import SEEN, Stations
from attentest.analysis.identify.norms import EPSILONS, options
from attentest.analysis.identify.numbers import Under, shortest, solve
from attentest.analysis.identify.station import Station
from attentest.harness.tolerances import largest
from attentest_spec import CHOICES, Choices
from attentest_spec.choices import Value
from attentest_spec.parameters import head_width, shapes

NEAR = 1e-5
"""Relative difference up to which a candidate may be the one: single precision is nearer."""

COARSE = 1e-4
"""The same where a cap that is not known yet may show."""

LEAST = 1e-12
"""A difference up to which numbers are the same, however exact the solution is."""

CAPS: tuple[Value, ...] = ("none", 50.0, 30.0, 20.0)
"""The caps that are tried before one is solved for."""

_SCALES = [float(one) for one in np.logspace(-4, 3, 29)]
_CAPS = [float(one) for one in np.logspace(-1, 4, 21)]
_BASES = [float(one) for one in np.logspace(1, 9, 33)]


def admitted(stations: Stations, candidates: Iterable[Choices]) -> Iterator[Choices]:
    """Yield the candidates with the parameters of the structure, each once."""
    component, sizes = stations.probe.component, stations.sizes
    wanted = shapes(component, sizes, stations.structure)
    for one in dict.fromkeys(candidates):
        if shapes(component, sizes, one) == wanted:
            yield one


def varied(base: Choices, **axes: Sequence[Value]) -> Iterator[Choices]:
    """Yield `base` with all combinations of the options of `axes`."""
    for values in product(*axes.values()):
        yield base.but(**dict(zip(axes, values, strict=True)))


def remaining(station: Station, choices: Choices) -> float:
    """Return the difference from the answer under `choices`, relative to the largest number."""
    return station.distance(choices) / max(largest(station.actual), 1e-300)


def closest(station: Station, candidates: Iterable[Choices]) -> tuple[Choices | None, float]:
    """Return the first candidate that is near, else the nearest, with what remains."""
    best: Choices | None = None
    least = inf
    for one in candidates:
        try:
            left = remaining(station, one)
        except (ValueError, ArithmeticError, LookupError):  # a combination without a formula
            continue
        if left < least:
            best, least = one, left
        if left < NEAR / 5:
            break
    return best, least


def scores(stations: Stations, base: Choices) -> tuple[Choices, float]:
    """Return the choices of scores that positions do not change, and what remains.

    Where positions can be given all tokens are at one position, so that nothing is turned.
    """
    station = stations.attention(SEEN, same=True)
    kinds = list(admitted(stations, _norms_of_heads(stations, base)))
    width = head_width(stations.sizes, base)
    scales: list[Value] = ["inverse-sqrt-e", 1.0, 1.0 / width]
    tried = (one for kind in kinds for one in varied(kind, score_scale=scales, score_cap=CAPS))
    best, left = closest(station, tried)
    if left < NEAR:
        return best or base, left
    for kind in kinds:
        found = _solved(stations, kind, width)
        if found is not None and (now := remaining(station, found)) < left:
            best, left = found, now
        if left < NEAR:
            break
    return best or base, left


def _norms_of_heads(stations: Stations, base: Choices) -> Iterator[Choices]:
    """Yield the norms of queries and keys, and the biases of scores, that the structure allows."""
    axes: dict[str, Sequence[Value]] = {
        "query_key_norm": options("query_key_norm"),
        "relative_bias": options("relative_bias"),
    }
    if base.norm_kind == "layer" and stations.structure.query_key_norm != "none":
        axes |= {"rms_weight": ("weight", "one-plus-weight"), "rms_epsilon": EPSILONS}
    yield from varied(base, **axes)


def _solved(stations: Stations, kind: Choices, width: int) -> Choices | None:
    """Return `kind` with the scale and the cap that come closest, None where none come close.

    The scale is solved for where scores are small, so that no cap shows, the cap where they are
    larger, and then the scale again.
    """
    added = 1.0 if kind.rms_weight == "one-plus-weight" else 0.0
    small, middle, large = every = [
        stations.attention(SEEN, steep=one, same=True, added=added) for one in (0.02, 1.0, 2.5)
    ]

    def at(scale: float) -> Choices:
        return kind.but(score_scale=scale)

    scale = solve(small, at, _SCALES)
    if remaining(small, at(scale)) > COARSE:
        return None
    if remaining(large, at(scale)) < NEAR:
        return _short(large, at, scale, width)
    cap = solve(large, lambda one: at(scale).but(score_cap=one), _CAPS)
    for digits in (1, 2, 3, 4, 6):
        capped = kind.but(score_cap=float(f"{cap:.{digits - 1}e}"))
        again = solve(middle, _scaled(capped), _SCALES)
        found = _short(middle, _scaled(capped), again, width)
        if all(remaining(one, found) < NEAR / 5 for one in every):
            return found
    return None


def _scaled(base: Choices) -> Under:
    """Return `base` as a function of the scale of its scores."""
    return lambda scale: base.but(score_scale=scale)


def _short(station: Station, at: Under, value: float, width: int) -> Choices:
    """Return the choices with the shortest number near `value`, or that of the paper."""
    if abs(value * sqrt(width) - 1.0) < NEAR / 5:
        return at(value).but(score_scale="inverse-sqrt-e")
    left = max(2 * station.distance(at(value)), LEAST)
    short = shortest(value, lambda one: station.distance(at(one)) <= left)
    return at(value if short is None else short)


def turns(stations: Stations, base: Choices, *, placed: bool) -> tuple[Choices, float]:
    """Return `base` with the choices of rotary positions and of the window, and what remains.

    Where tokens that are `placed` at one position were not explained, only a scaling that
    multiplies sines and cosines can be the reason.
    """
    near = stations.attention(SEEN)
    scalings = options("rotary_scaling") if placed else ["yarn"]
    best, left = closest(near, admitted(stations, _turned(stations, base, scalings)))
    if left > NEAR and placed:
        best, left = _with_base(stations, near, base, best, left)
    if best is None or left > NEAR:
        return best or base, left
    far = stations.attention(8)
    hidden = {name: options(name) for name in ("attention_window", "packed_documents")}
    every = _scalings(best) if best.attention_rotary != "none" else [best]
    tried = (one for each in every for one in varied(each, **hidden))
    found, left = closest(far, tried)
    return found or best, left


def _turned(stations: Stations, base: Choices, scalings: Sequence[Value]) -> Iterator[Choices]:
    """Yield no turns, then all turns in use; the usual scale of scores before the one found."""
    yield base
    scales = list(dict.fromkeys([CHOICES["score_scale"].first, base.score_scale]))
    places = _places_of_norms(base)
    for direction, scale in product(options("rotary_direction"), scales):
        turned = base.but(
            attention_rotary="query-and-key", score_scale=scale, rotary_direction=direction
        )
        for part in _parts(stations, turned):
            yield from varied(
                part,
                rotary_base=options("rotary_base"),
                rotary_scaling=scalings,
                rotary_pairs=("halves", "adjacent"),
                rotary_magnitude=("as-scaling", 1.0),
                query_key_norm_place=places,
            )


def _places_of_norms(base: Choices) -> list[Value]:
    """Return where queries and keys may be normalised: the place counts where they are."""
    places = options("query_key_norm_place")
    return places if base.query_key_norm != "none" else places[:1]


def _parts(stations: Stations, base: Choices, parts: Sequence[float] = ()) -> Iterator[Choices]:
    """Yield the parts of a head that may be turned, all even numbers of columns by default."""
    yield base
    width = head_width(stations.sizes, base)
    columns = sorted(range(2, width, 2), key=lambda one: width % one)
    for part in parts or [one / width for one in columns]:
        for kind in options("rotary_partial"):
            yield base.but(rotary_width=part, rotary_partial=kind)


def _scalings(best: Choices) -> list[Choices]:
    """Return `best`, and the scalings that do not differ from it in short texts."""
    return [best, *varied(best, rotary_scaling=options("rotary_scaling"))]


def _with_base(
    stations: Stations, near: Station, base: Choices, best: Choices | None, left: float
) -> tuple[Choices | None, float]:
    """Return the choices with a base that is solved for, where no base in use comes close."""
    turned = base.but(attention_rotary="query-and-key")
    kinds = {
        "rotary_pairs": ("halves", "adjacent"),
        "rotary_scaling": ("none", "linear"),
        "rotary_direction": options("rotary_direction"),
        "query_key_norm_place": _places_of_norms(base),
    }
    for part in _parts(stations, turned, (0.5, 0.25, 0.75)):
        for one in varied(part, **kinds):
            under = _based(one)
            value = solve(near, under, _BASES)
            if (now := remaining(near, under(value))) < left:
                left, best = now, _shortest_base(near, under, value)
            if left < NEAR:
                return best, left
    return best, left


def _based(choices: Choices) -> Under:
    """Return `choices` as a function of the base of its rotary positions."""
    return lambda base: choices.but(rotary_base=base)


def _shortest_base(near: Station, under: Under, value: float) -> Choices:
    exact = max(2 * near.distance(under(value)), LEAST)
    short = shortest(value, lambda one: near.distance(under(one)) <= exact)
    return under(value if short is None else short)
