"""The kinds of pictures: how each is read, and what is seen in it, in words."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from views import SMALL, Kind, Pair

from attentest_spec.setting import Array


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _rows(marked: Array) -> str:
    return "; ".join(f"row {number}: {_columns(row)}" for number, row in enumerate(marked, start=1))


def _columns(row: Array) -> str:
    found = np.flatnonzero(row) + 1
    word = "column" if len(found) == 1 else "columns"
    return f"{word} {', '.join(map(str, found))}" if len(found) else "none"


def _kept(_: Pair, values: Array) -> str:
    holds = "" if values.dtype == bool else f", and it holds {_distinct(values)}"
    return f"kept are {_rows(values.astype(bool))}{holds}"


def _distinct(values: Array) -> str:
    return " and ".join(f"{value:g}" for value in np.unique(values))


def _reached(_: Pair, values: Array) -> str:
    return f"what moves each row is {_rows(~(np.abs(values) < SMALL))}"


def _weighed(pair: Pair, values: Array) -> str:
    largest = ", ".join(str(place + 1) for place in np.argmax(values, axis=1))
    told = f"the rows sum to {_listed(values.sum(axis=1))}; their largest is in column {largest}"
    peaks = f"{told}, and is {_listed(values.max(axis=1))}"
    if pair.hidden is None:
        return peaks
    masked = np.where(pair.hidden, values, 0.0).sum(axis=1)
    return f"{peaks}; on hidden keys are {_listed(masked)}"


def _ranged(_: Pair, values: Array) -> str:
    rows = (f"{row.min():.2f} to {row.max():.2f}" for row in values)
    return "row by row, numbers from " + "; ".join(rows)


def _spread(_: Pair, values: Array) -> str:
    means, deviations = _listed(values.mean(axis=1)), _listed(values.std(axis=1))
    return f"by position, the means are {means} and the deviations {deviations}"


def _traced(_: Pair, values: Array) -> str:
    ends = (f"{one[0]:.2f} over {one[len(one) // 2]:.2f} to {one[-1]:.2f}" for one in values.T)
    return "the curves go from " + "; ".join(ends)


MASK = Kind(
    "mask",
    "Blue cells may be attended to, pale ones may not; the text is what the mask holds. Framed: "
    "cells that say the opposite of what is right.",
    _kept,
)
SHARES = Kind(
    "weights", "The darker, the larger. The sum of each row stands at its right.", _weighed
)
WEIGHTS = replace(SHARES, reading=f"{SHARES.reading} Hatched: keys that the mask hides.")
INFLUENCE = Kind(
    "influence",
    "A number says how far an output moves when one position of the input is changed, in per cent "
    "of the farthest move in both pictures; in an empty cell it does not move at all. Framed: "
    "cells that should be empty and are not, or the reverse.",
    _reached,
)
VALUES = Kind(
    "values",
    "Orange is negative, purple is positive, pale is near zero. The third panel is wrong less "
    "right.",
    _ranged,
    difference=True,
)
TABLE = Kind("table", "Orange is negative, purple is positive, pale is near zero.", _ranged)
SPREAD = Kind(
    "spread",
    "The dots are the numbers at one position. The bar runs one deviation, which is written beside "
    "it, up and down from their mean.",
    _spread,
)
CURVES = Kind(
    "curves",
    "Each line is one column of the output. The third panel is wrong less right, on a scale of its "
    "own.",
    _traced,
    difference=True,
)
DRIFT = Kind(
    "curves", "Each line is one column of the output. Right, all of them lie on zero.", _traced
)
