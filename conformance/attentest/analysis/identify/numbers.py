"""Solver for the number behind a numeric choice: a root, then the shortest number that fits."""

from collections.abc import Callable, Sequence

import numpy as np

from attentest.analysis.identify.station import Station
from attentest_spec import Choices
from attentest_spec.setting import Floats

FINE = 2e-15
"""Relative width of the interval at which narrowing ends."""

Under = Callable[[float], Choices]
"""Returns the choices with the unknown number set to a value."""

Point = tuple[float, float]
"""A number, and the error of the prediction with it."""


def solve(station: Station, under: Under, grid: Sequence[float]) -> float:
    """Return the number at which the reference is closest to the answer, near a point of `grid`.

    The grid is in rising order; the closest point and its two neighbours hold the solution. Every
    second point is tried, and then those beside the closest.
    """
    differences = {n: station.distance(under(grid[n])) for n in range(0, len(grid), 2)}
    close = min(differences, key=lambda n: differences[n])
    for n in {max(close - 1, 0), min(close + 1, len(grid) - 1)}:
        differences[n] = station.distance(under(grid[n]))
    best = min(differences, key=lambda n: differences[n])
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return root(station, under, low, high)


def root(station: Station, under: Under, low: float, high: float) -> float:
    """Return the number between `low` and `high`, both of one sign, that gives the answer.

    It is found at the one output number that changes most between the two ends; where the answer
    does not lie between them, the closer end is returned.
    """
    first, last = station.predicted(under(low)), station.predicted(under(high))
    place = _most_changed(station.actual, first, last)
    wanted = station.actual[place]
    if not min(first[place], last[place]) <= wanted <= max(first[place], last[place]):
        return min((low, high), key=lambda value: station.distance(under(value)))
    low, high = _narrowed(
        (low, float(first[place] - wanted)),
        (high, float(last[place] - wanted)),
        lambda value: float(station.predicted(under(value))[place] - wanted),
    )
    return min((low, high), key=lambda value: station.distance(under(value)))


def _narrowed(near: Point, far: Point, error: Callable[[float], float]) -> tuple[float, float]:
    """Return two numbers of width FINE between those of `near` and `far`, with the root of `error`.

    The next number is where the line through both points crosses zero. An end that stays counts
    half from then on (the Illinois method), and every fourth time the interval is halved.
    """
    steps = 0
    while abs(near[0] - far[0]) > FINE * min(abs(near[0]), abs(far[0])):
        steps += 1
        value = _middle(near[0], far[0]) if steps % 4 == 0 else _crossing(near, far)
        point = value, error(value)
        if point[1] == 0.0:
            return value, value
        near, far = point, (near if point[1] * near[1] <= 0 else (far[0], far[1] / 2))
    return near[0], far[0]


def _crossing(near: Point, far: Point) -> float:
    """Return where the line through both points crosses zero, or the middle of the two.

    The line is over the logarithm while they are far apart; rounding may take it outside.
    """
    if near[1] == far[1]:
        return _middle(near[0], far[0])
    share = near[1] / (near[1] - far[1])
    ratio = far[0] / near[0]
    power = ratio**share if not 0.5 < ratio < 2.0 else 1.0 + share * (ratio - 1.0)
    inside = sorted((near[0], near[0] * power, far[0]))[1] == near[0] * power
    return near[0] * power if inside and power not in (1.0, ratio) else _middle(near[0], far[0])


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
