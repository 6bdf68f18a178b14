"""The kinds of pictures: the legend of each, and a function that describes it in text."""

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
    marked = np.flatnonzero(row) + 1
    word = "column" if len(marked) == 1 else "columns"
    return f"{word} {', '.join(map(str, marked))}" if len(marked) else "none"


def _describe_mask(_: Pair, values: Array) -> str:
    content = "" if values.dtype == bool else f"; its values are {_distinct(values)}"
    return f"it keeps {_rows(values.astype(bool))}{content}"


def _distinct(values: Array) -> str:
    return " and ".join(f"{value:g}" for value in np.unique(values))


def _describe_influence(_: Pair, values: Array) -> str:
    return f"each row depends on {_rows(~(np.abs(values) < SMALL))}"


def _describe_weights(pair: Pair, values: Array) -> str:
    largest = ", ".join(str(place + 1) for place in np.argmax(values, axis=1))
    sums = f"the rows sum to {_listed(values.sum(axis=1))}; their largest is in column {largest}"
    peaks = f"{sums}, and is {_listed(values.max(axis=1))}"
    if pair.hidden is None:
        return peaks
    masked = np.where(pair.hidden, values, 0.0).sum(axis=1)
    return f"{peaks}; hidden keys get {_listed(masked)}"


def _describe_ranges(_: Pair, values: Array) -> str:
    rows = (f"{row.min():.2f} to {row.max():.2f}" for row in values)
    return "the ranges of the rows are " + "; ".join(rows)


def _describe_spread(_: Pair, values: Array) -> str:
    means, deviations = _listed(values.mean(axis=1)), _listed(values.std(axis=1))
    return f"by position, the means are {means} and the standard deviations {deviations}"


def _describe_curves(_: Pair, values: Array) -> str:
    ends = (f"{one[0]:.2f} over {one[len(one) // 2]:.2f} to {one[-1]:.2f}" for one in values.T)
    return "the curves go from " + "; ".join(ends)


def _describe_written(_: Pair, values: Array) -> str:
    return f"the tokens are {', '.join(map(str, np.argmax(values, axis=1)))}"


MASK = Kind(
    "mask",
    "A query may attend to blue cells and not to pale ones; the text is the value of the mask. "
    "Framed: cells with the wrong meaning.",
    _describe_mask,
)
SHARES = Kind(
    "weights",
    "Darker cells are larger. The sum of each row is printed on its right.",
    _describe_weights,
)
WEIGHTS = replace(SHARES, reading=f"{SHARES.reading} Hatched: keys that the mask hides.")
INFLUENCE = Kind(
    "influence",
    "A number shows how much an output changes when one position of the input is changed, in per "
    "cent of the largest change in both pictures. An empty cell means no change. Framed: cells "
    "that should be empty and are not, or the reverse.",
    _describe_influence,
)
VALUES = Kind(
    "values",
    "Orange is negative, purple is positive, pale is near zero. The third panel is the wrong "
    "values minus the correct ones.",
    _describe_ranges,
    difference=True,
)
TABLE = Kind(
    "table", "Orange is negative, purple is positive, pale is near zero.", _describe_ranges
)
SPREAD = Kind(
    "spread",
    "The dots are the values at one position. The bar is the mean plus and minus one standard "
    "deviation, which is printed next to it.",
    _describe_spread,
)
CURVES = Kind(
    "curves",
    "Each line is one column of the output. The third panel is the wrong values minus the correct "
    "ones, on its own scale.",
    _describe_curves,
    difference=True,
)
DRIFT = Kind(
    "curves",
    "Each line is one column of the output. In the correct picture, all of them are zero.",
    _describe_curves,
)
WRITTEN = Kind(
    "weights",
    "The dark cell of a row is the token in this place, counted from 0 on the left.",
    _describe_written,
)
