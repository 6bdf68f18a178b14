"""Effects of the factors of a sweep: differences between trainings that agree in all else.

The effect of a level is the mean difference from the base of its factor over all pairs of trainings
that have the same levels of the other factors and the same seed. Its interval is that of a
bootstrap over the seeds (percentiles of the means of seeds drawn with replacement).
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

import numpy as np

from attentest.results.optional import needed
from attentest.studies.learning.result import Point
from attentest.studies.sweep.grid import Levels
from attentest.studies.sweep.record import Record
from attentest_spec.choices import Value

MEASURES = ("validation", "tokens", "sequences")
"""The measures whose effects are shown: fields of the last :class:`Point`."""

CONFIDENCE = 0.95

RESAMPLES = 9999

FEWEST = 5
"""The number of seeds from which on an interval is given."""

Place = Mapping[str, Value]


@dataclass(frozen=True)
class Effect:
    """The difference that a level makes against its base; of two factors, their interaction.

    `levels` are the levels by factor, `difference` is the mean over the `seeds`, and `low` and
    `high` bound its interval; both are None for fewer than :data:`FEWEST` seeds. `pairs` is the
    number of differences.
    """

    measure: str
    levels: Place
    base: Place
    difference: float
    low: float | None
    high: float | None
    seeds: int
    pairs: int

    @property
    def seen(self) -> bool | None:
        """Whether the interval leaves out 0; None where there is no interval."""
        if self.low is None or self.high is None:
            return None
        return not self.low <= 0 <= self.high


def main_effects(factors: Levels, records: Sequence[Record], measure: str) -> list[Effect]:
    """Return the effect of every level but the base, by factor."""
    table = _table(records, measure)
    return [
        found
        for name, (base, *others) in factors.items()
        for one in others
        if (found := _effect(table, measure, {name: one}, {name: base}))
    ]


def interactions(factors: Levels, records: Sequence[Record], measure: str) -> list[Effect]:
    """Return how the effect of one level depends on another one, for every two of two factors."""
    table = _table(records, measure)
    return [
        found
        for first, second in combinations(factors, 2)
        for one in factors[first][1:]
        for other in factors[second][1:]
        if (
            found := _effect(
                table,
                measure,
                {first: one, second: other},
                {first: factors[first][0], second: factors[second][0]},
            )
        )
    ]


_Key = tuple[tuple[tuple[str, Value], ...], int]


def _table(records: Sequence[Record], measure: str) -> dict[_Key, float]:
    """Return the measure of every training that did not fail, by its levels and its seed."""
    value: Callable[[Point], float] = lambda point: getattr(point, measure)  # noqa: E731
    return {_key(one.levels, one.seed): value(one.end) for one in records if one.end is not None}


def _key(levels: Place, seed: int) -> _Key:
    return tuple(sorted(levels.items())), seed


def _effect(table: Mapping[_Key, float], measure: str, levels: Place, base: Place) -> Effect | None:
    """Return the effect of `levels` against `base`; None where no trainings can be compared."""
    by_seed = defaultdict(list)
    for key, seed in table:
        cell = dict(key)
        if all(cell.get(name) == one for name, one in levels.items()):
            corners = list(_corners(cell, levels, base))
            keys = [_key(corner, seed) for corner, _ in corners]
            if all(one in table for one in keys):
                signs = [sign for _, sign in corners]
                by_seed[seed].append(
                    sum(sign * table[one] for sign, one in zip(signs, keys, strict=True))
                )
    if not by_seed:
        return None
    means = [fmean(by_seed[seed]) for seed in sorted(by_seed)]
    pairs = sum(len(one) for one in by_seed.values())
    return Effect(measure, levels, base, fmean(means), *_interval(means), len(means), pairs)


def _corners(cell: Place, levels: Place, base: Place) -> Iterator[tuple[Place, int]]:
    """Yield the cells whose signed sum is the effect, with the signs.

    One factor has two corners, and two factors have four: the effect of the one at a level of the
    other, less that at its base.
    """
    names = list(levels)
    for size in range(len(names) + 1):
        for back in combinations(names, size):
            yield {**cell, **{name: base[name] for name in back}}, (-1) ** size


def _interval(means: Sequence[float]) -> tuple[float | None, float | None]:
    if len(means) < FEWEST:
        return None, None
    if len(set(means)) == 1:
        return means[0], means[0]
    found = needed("scipy.stats", "sweep").bootstrap(
        (np.array(means),),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)
