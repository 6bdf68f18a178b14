"""Measurement of the mask fill, and of rows that keep no key."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from attentest.analysis.identify.numbers import FINE, shortest
from attentest.analysis.identify.parts import Part, steep
from attentest.analysis.identify.station import Station
from attentest.harness.arithmetic import arithmetic
from attentest_spec import Choices
from attentest_spec.contract import Input
from attentest_spec.precision import epsilon, largest
from attentest_spec.setting import Array, Floats

STEEPEST = 1e30
"""Scores up to this size are tried; a fill below them is as good as exact."""

FINEST = 1e-7
"""Relative difference of scores that survives the roundings on their way through a model."""

PLATEAU = 1e-6
"""Shares of masked keys that differ by less belong to one arrangement of winning rows."""

OPEN = -1e-300
"""A fill that large negative scores fall below: the masked key wins."""

Make = Callable[[float], Station]


class NoMask(Exception):
    """The backend takes no mask that shows what is asked for."""


def fill(part: Part) -> tuple[float | str | None, float]:
    """Return the fill of masked scores, and how far the oracle is from the answer under it.

    The scores of kept keys are made to fall until the masked ones win: there lies the fill. It is
    None where neither a number nor "exact" gives the answers.
    """
    make, steepest = _stations(part), min(STEEPEST, largest(part.probe.precision) / 1e3)
    known = part.choices.mask_fill
    if isinstance(known, float):
        width = _gap(arithmetic(part.probe, part.choices), known) / 10.0
        factor = _balanced(make, part.choices, -known / 1e2, -known * 1e3, width)
        again = _Near(make, part.choices, factor, known)
        if again.fits(known) and not again.fits(2.0 * known):
            return known, again.distance(known)
    if _share(make(steepest), part.choices) < 0.5:
        return _exact(make, part.choices.but(mask_fill="exact"))
    factor = _balanced(make, part.choices, 1e-3, steepest, FINE)
    for margin in (0.0, PLATEAU, -PLATEAU):
        solved = _solved(make(factor), part.choices, factor, margin)
        near = _Near(make, part.choices, factor, solved)
        if (found := shortest(solved, near.fits)) is not None:
            return found, near.distance(found)
    return None, near.distance(solved)


class _Near:
    """Answers where kept scores lie about a fill, `factor` makes them equal to it."""

    def __init__(self, make: Make, choices: Choices, factor: float, value: float) -> None:
        self._choices = choices
        self._stations = [make(factor)]
        gap = _gap(arithmetic(self._stations[0].probe, choices), value)
        if gap * abs(value) > 2.0:  # too steep: equal scores come out different
            self._stations.clear()
        self._stations += [make(factor * (1.0 - gap)), make(factor * (1.0 + gap))]

    def fits(self, value: float) -> bool:
        return all(one.fits(self._choices.but(mask_fill=value)) for one in self._stations)

    def distance(self, value: float) -> float:
        return max(one.distance(self._choices.but(mask_fill=value)) for one in self._stations)


def _gap(precision: str, value: float) -> float:
    """Return the relative difference at which a kept score is distinguished from a fill."""
    return min(0.5, max(2.0 / abs(value), FINEST, 8.0 * epsilon(precision)))


def _exact(make: Make, choices: Choices) -> tuple[str | None, float]:
    stations = [make(factor) for factor in (0.1, 10.0, 1e6)]
    found = "exact" if all(station.fits(choices) for station in stations) else None
    return found, max(station.distance(choices) for station in stations)


def _balanced(make: Make, choices: Choices, low: float, high: float, width: float) -> float:
    """Return the factor at which masked keys begin to win, to the relative `width`, by halving."""
    while high > low * (1.0 + width):
        middle = float(np.sqrt(low) * np.sqrt(high))
        low, high = (low, middle) if _share(make(middle), choices) > 0.5 else (middle, high)
    return float(np.sqrt(low) * np.sqrt(high))


def _solved(station: Station, choices: Choices, factor: float, margin: float = 0.0) -> float:
    """Return the fill under which the oracle gives masked keys the weight that the answer does.

    Where all or nothing is theirs, the answer stands right beside the step: its middle is taken.
    `margin` is added to the share that is looked for: where the masked keys win in some rows and
    lose in others, many fills have one share, and a margin finds the first or the last of them.
    """
    share = _share(station, choices) + margin
    wanted = share if 0.01 < share < 0.99 else 0.5
    weak, strong = 1e-4 * factor, 1e4 * max(factor, 1.0)
    while strong > weak * (1.0 + FINE):
        middle = float(np.sqrt(weak) * np.sqrt(strong))
        halfway = replace(station, actual=station.predicted(choices.but(mask_fill=-middle)))
        weak, strong = (middle, strong) if _share(halfway, choices) > wanted else (weak, middle)
    return -strong


def _share(station: Station, choices: Choices) -> float:
    """Return how far the answer went from masked keys that lose (0) to ones that win (1)."""
    closed = station.distance(choices.but(mask_fill="exact"))
    opened = station.distance(choices.but(mask_fill=OPEN))
    return closed / (closed + opened) if closed else 0.0


def _stations(part: Part) -> Make:
    inputs = _hidden(part)

    def make(factor: float) -> Station:
        if part.component == "attention":
            query, *rest = inputs
            assert isinstance(query, np.ndarray)
            return Station.of(part.probe, {}, (query * factor, *rest))
        parameters = steep(part, factor)
        if part.component == "model":
            for name in ("source_embedding.weight", "target_embedding.weight"):
                parameters[name] = _told_apart(parameters[name])
            parameters = part.tied(parameters)
        return Station.of(part.probe, parameters, inputs)

    return make


def _told_apart(weight: Floats) -> Floats:
    """Return an embedding whose pad points against every token in the column of the keys.

    Its column of the queries is above the mean of each row, so that every norm leaves its sign.
    """
    weight = weight + np.resize([0.0, 0.0, -4.0, -2.0], weight.shape[1])
    weight[:, 0], weight[:, 1] = 2.0, 4.0
    weight[0, 1:3] = -4.0, 4.0
    return weight


def _hidden(part: Part) -> tuple[Input, ...]:
    """Return inputs that keep the first key, whose scores fall, and hide two, whose scores rise."""
    if part.component == "model":
        return np.array([[1, 0, 0], [1, 0, 0]]), np.array([[3], [4]])
    if part.choices.attention_rotary != "none":
        raise NoMask("queries and keys that are turned have no scores of one sign")
    rng = np.random.default_rng(8)
    # One kept key, whose score passes the fill but once, and rows of one mean and one deviation: a
    # norm without a bias leaves their first column the same for all.
    rows = np.tile([1.0, -2.0, 2.0, -1.0], (2, 3, 1))
    rows[:, 0, 1:3] = 2.0, -2.0
    mask = _mask(part, np.array([True, False, False]))
    if part.component == "attention":
        query, key, value = rng.normal(size=(3, 2, part.probe.sizes.heads, 3, 2))
        query[...], key[..., 0, :], key[..., 1:, :] = (1.0, 0.0), (-1.0, 0.0), (1.0, 0.0)
        return query, key, value, mask
    kept = part.memory_kept(3)
    return {
        "multi_head_attention": (rows, rows, rows, mask),
        "encoder_layer": (rows, mask),
        "encoder": (rows, mask),
    }.get(part.component, (rows, rows, kept, mask))


def _mask(part: Part, keep: Array) -> Array:
    """Return a mask over three keys: `keep`, or where only causal ones are taken, that."""
    kinds = part.probe.subject.limits.masks
    if "padding" in kinds:
        return np.tile(keep, (2, 1, 1, 1))
    if "per-sample" in kinds:
        return np.tile(keep, (2, 1, 3, 1))
    if "per-head" in kinds:
        return np.tile(keep, (2, part.probe.sizes.heads, 3, 1))
    if "causal" in kinds and keep.any():
        return np.tril(np.ones((1, 1, 3, 3), dtype=bool))
    raise NoMask("it takes no mask that would show it")


def empty_row(part: Part) -> Station:
    """Return what the part answers where the queries of the first sample may attend to nothing."""
    parameters = part.drawn()
    if part.component == "model":
        source, target = np.array([[0, 0, 0], [1, 2, 3]]), np.array([[1, 2], [3, 4]])
        return Station.of(part.probe, parameters, (source, target))
    mask = _mask(part, np.zeros(3, dtype=bool)).copy()
    mask[1] = True
    *rest, _ = part.inputs()
    if part.component in ("decoder_layer", "decoder"):
        return Station.of(part.probe, parameters, (rest[0], rest[1], part.memory_kept(2), mask))
    return Station.of(part.probe, parameters, (*rest, mask))
