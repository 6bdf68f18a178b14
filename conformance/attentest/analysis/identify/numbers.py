"""Solver for the number behind a numeric choice: bisection, then the shortest number that fits."""

from collections.abc import Callable, Sequence

import numpy as np

from attentest.analysis.identify.station import Station
from attentest_spec import Choices
from attentest_spec.setting import Floats

FINE = 2e-15
"""Relative width of the interval at which halving ends."""

Under = Callable[[float], Choices]
"""Returns the choices with the unknown number set to a value."""


def solve(station: Station, under: Under, grid: Sequence[float]) -> float:
    """Return the number at which the reference is closest to the answer, near a point of `grid`.

    The grid is in rising order; the closest point and its two neighbours hold the solution.
    """
    differences = [station.distance(under(value)) for value in grid]
    best = int(np.argmin(differences))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return bisected(station, under, low, high)


def bisected(station: Station, under: Under, low: float, high: float) -> float:
    """Return the number between `low` and `high`, both of one sign, that gives the answer.

    It is found at the one output number that changes most between the two ends; where the answer
    does not lie between them, the closer end is returned.
    """
    first, last = station.predicted(under(low)), station.predicted(under(high))
    place = _most_changed(station.actual, first, last)
    wanted = station.actual[place]
    rising = last[place] > first[place]
    if not min(first[place], last[place]) <= wanted <= max(first[place], last[place]):
        return min((low, high), key=lambda value: station.distance(under(value)))
    while abs(low - high) > FINE * min(abs(low), abs(high)):
        middle = _middle(low, high)
        if (station.predicted(under(middle))[place] < wanted) == rising:
            low = middle
        else:
            high = middle
    return min((low, high), key=lambda value: station.distance(under(value)))


def shortest(value: float, fits: Callable[[float], bool]) -> float | None:
    """Return the number of fewest digits near `value` that `fits`, or None where none does."""
    if not fits(value):
        return None
    for digits in range(1, 18):
        rounded = float(f"{value:.{digits - 1}e}")
        if fits(rounded):
            return rounded
    return None


def _middle(low: float, high: float) -> float:
    """Return the geometric mean, of two negative numbers a negative one."""
    return float(np.sign(low) * np.sqrt(abs(low)) * np.sqrt(abs(high)))


def _most_changed(actual: Floats, first: Floats, last: Floats) -> tuple[int, ...]:
    """Return where the two predictions differ most and the answer lies between them."""
    with np.errstate(invalid="ignore"):
        change = np.abs(last - first)
        between = (np.minimum(first, last) <= actual) & (actual <= np.maximum(first, last))
    change = np.where(np.isfinite(change) & between, change, -1.0)
    return tuple(int(index) for index in np.unravel_index(int(np.argmax(change)), change.shape))
