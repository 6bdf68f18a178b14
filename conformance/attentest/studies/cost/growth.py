"""Growth of a quantity with the length or the width."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log, sqrt

import numpy as np

TERMS = ("constant", "linear", "quadratic")

_MEDIAN_ERROR = 1.2533  # the standard error of a median, in those of a mean (normal noise)
_QUARTILES = 1.349  # standard deviations between the quartiles of normal noise


@dataclass(frozen=True)
class Slope:
    """The exponent between the last two sizes, and its standard error (None where unknown)."""

    exponent: float
    error: float | None


def slope(sizes: Sequence[int], samples: Sequence[Sequence[float]]) -> Slope:
    """Return the exponent at the long end: the slope of log(value) over log(size).

    `samples` are the values measured at each of the `sizes`, one for what is known exactly. The
    medians are compared; their error is told by the quartiles, so that a few calls which were
    interrupted count for little. Raises ValueError for fewer than two sizes.
    """
    if len(sizes) < 2:
        raise ValueError("An exponent needs two sizes.")
    run = log(sizes[-1] / sizes[-2])
    (low, low_error), (high, high_error) = (_middle(np.log(one)) for one in samples[-2:])
    if low_error is None or high_error is None:
        return Slope((high - low) / run, None)
    return Slope((high - low) / run, sqrt(low_error**2 + high_error**2) / run)


def _middle(
    values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]",
) -> tuple[float, float | None]:
    """Return the median of `values` and its standard error, None where there are fewer than 4."""
    first, middle, third = (float(one) for one in np.quantile(values, (0.25, 0.5, 0.75)))
    if len(values) < 4:
        return middle, None
    return middle, _MEDIAN_ERROR * (third - first) / _QUARTILES / sqrt(len(values))


def polynomial(sizes: Sequence[int], values: Sequence[float]) -> tuple[float, float, float]:
    """Return a, b and c of a + b n + c n^2, none of them negative, nearest to the `values`.

    Relative errors are squared, so that short and long count alike. With three terms every choice
    of terms can be tried: the best one without a negative term is the exact answer. Raises
    ValueError for fewer than three sizes.
    """
    if len(sizes) < 3:
        raise ValueError("A constant, a linear and a quadratic term need three sizes.")
    n = np.array(sizes, dtype=np.float64) / sizes[-1]
    columns = np.stack([n**0, n, n**2], axis=1) / np.array(values, dtype=np.float64)[:, None]
    fits = [_fit(columns, kept) for count in (1, 2, 3) for kept in combinations(range(3), count)]
    a, b, c = min((one for one in fits if one.min() >= 0), key=lambda one: _missed(columns, one))
    return float(a), float(b) / sizes[-1], float(c) / sizes[-1] ** 2


def _fit(columns: "np.ndarray", kept: tuple[int, ...]) -> "np.ndarray":
    terms = np.zeros(3)
    terms[list(kept)] = np.linalg.lstsq(columns[:, kept], np.ones(len(columns)), rcond=None)[0]
    return terms


def _missed(columns: "np.ndarray", terms: "np.ndarray") -> float:
    return float(np.square(columns @ terms - 1).sum())


def shares(terms: tuple[float, float, float], size: int) -> tuple[float, float, float]:
    """Return which share of the whole each of the `terms` has at `size`."""
    a, b, c = terms
    whole = a + b * size + c * size**2
    return a / whole, b * size / whole, c * size**2 / whole
