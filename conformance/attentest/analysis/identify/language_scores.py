"""The choices of scores: their scale, their cap, norms and turns of queries and keys, the window."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product
from math import inf, sqrt

import numpy as np

from attentest.analysis.identify.language_stations import SEEN, Stations
from attentest.analysis.identify.norms import EPSILONS, options
from attentest.analysis.identify.numbers import shortest, solve
from attentest.analysis.identify.station import Station
from attentest.harness.tolerances import largest
from attentest_spec import CHOICES, Choices
from attentest_spec.choices import Value
from attentest_spec.parameters import head_width, shapes
from attentest_spec.rotary import magnitude

NEAR = 1e-5
"""Relative difference up to which a candidate may be the one: single precision is nearer."""

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
        found = _solved(stations, station, kind, width)
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


def _solved(stations: Stations, station: Station, kind: Choices, width: int) -> Choices | None:
    """Return `kind` with the scale and the cap that come closest.

    The scale is solved for where scores are small, so that no cap shows, the cap where they are
    large, and then the scale again.
    """
    small, large = (stations.attention(SEEN, steep=one, same=True) for one in (0.02, 6.0))

    def at(scale: float) -> Choices:
        return kind.but(score_scale=scale)

    scale = solve(small, at, _SCALES)
    if abs(scale * sqrt(width) - 1.0) < 1e-3:
        scale = 1.0 / sqrt(width)
    if remaining(small, at(scale)) > 1e-4:
        return None
    if remaining(large, at(scale)) < NEAR:
        return _short(large, at, scale, width)

    def capped(cap: float) -> Choices:
        return at(scale).but(score_cap=cap)

    cap = solve(large, capped, _CAPS)
    for digits in (1, 2, 3, 4, 6):
        shown = float(f"{cap:.{digits - 1}e}")
        again = solve(large, lambda one: kind.but(score_cap=shown, score_scale=one), _SCALES)
        if remaining(large, kind.but(score_cap=shown, score_scale=again)) < NEAR / 10:
            return _short(large, lambda one: kind.but(score_cap=shown, score_scale=one), again, width)
    return None


def _short(station: Station, at: object, value: float, width: int) -> Choices:
    """Return the choices with the shortest number near `value`, or that of the paper."""
    if abs(value * sqrt(width) - 1.0) < 1e-6:
        return at("inverse-sqrt-e")  # type: ignore[operator,no-any-return]
    left = max(2 * station.distance(at(value)), 1e-12)  # type: ignore[operator]
    short = shortest(value, lambda one: station.distance(at(one)) <= left)  # type: ignore[operator]
    return at(value if short is None else short)  # type: ignore[operator,no-any-return]


def turns(stations: Stations, base: Choices) -> tuple[Choices, float]:
    """Return `base` with the choices of rotary positions and of the window, and what remains."""
    near = stations.attention(SEEN)
    best, left = closest(near, admitted(stations, _turned(stations, base)))
    if left > NEAR:
        best, left = _with_base(stations, near, base, best, left)
    if best is None or left > NEAR:
        return best or base, left
    far = stations.attention(8)
    windows = options("attention_window")
    scalings = _scalings(best) if best.attention_rotary != "none" else [best]
    tried = (one for each in scalings for one in varied(each, attention_window=windows))
    found, left = closest(far, tried)
    return found or best, left


def _turned(stations: Stations, base: Choices) -> Iterator[Choices]:
    """Yield no turns, then all turns in use; the usual scale of scores before the one found."""
    yield base
    scales = list(dict.fromkeys([CHOICES["score_scale"].first, base.score_scale]))
    places = options("query_key_norm_place") if base.query_key_norm != "none" else ["before-rotation"]
    for direction, scale in product(options("rotary_direction"), scales):
        turned = base.but(
            attention_rotary="query-and-key", score_scale=scale, rotary_direction=direction
        )
        for part in _parts(stations, turned):
            yield from varied(
                part,
                rotary_base=options("rotary_base"),
                rotary_scaling=options("rotary_scaling"),
                rotary_pairs=("halves", "adjacent"),
                rotary_magnitude=("as-scaling", 1.0),
                query_key_norm_place=places,
            )


def _parts(stations: Stations, base: Choices) -> Iterator[Choices]:
    """Yield all parts of a head that may be turned."""
    yield base
    width = head_width(stations.sizes, base)
    for columns in sorted(range(2, width, 2), key=lambda one: width % one):
        for kind in options("rotary_partial"):
            yield base.but(rotary_width=columns / width, rotary_partial=kind)


def _scalings(best: Choices) -> list[Choices]:
    """Return `best`, and the scalings that do not differ from it in short texts."""
    return [best, *varied(best, rotary_scaling=options("rotary_scaling"))]


def _with_base(
    stations: Stations, near: Station, base: Choices, best: Choices | None, left: float
) -> tuple[Choices | None, float]:
    """Return the choices with a base that is solved for, where no base in use comes close."""
    turned = base.but(attention_rotary="query-and-key")
    for part in _parts(stations, turned):
        for one in varied(
            part,
            rotary_pairs=("halves", "adjacent"),
            rotary_scaling=("none", "linear"),
            rotary_direction=options("rotary_direction"),
        ):
            def at(value: float, one: Choices = one) -> Choices:
                return one.but(rotary_base=value)

            value = solve(near, at, _BASES)
            if (now := remaining(near, at(value))) < left:
                left = now
                exact = max(2 * near.distance(at(value)), 1e-12)
                short = shortest(value, lambda v, at=at: near.distance(at(v)) <= exact)
                best = at(value if short is None else short)
            if left < NEAR:
                return best, left
    return best, left
