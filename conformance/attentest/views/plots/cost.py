"""Plots of a cost, from its plain values, as a result file has them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from attentest.results.optional import needed
from attentest.studies.cost.memory import MIB, RESOLUTION
from attentest.views.plots.drawing import COLOURS, GREY, LEGEND, figure, literal, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MARKERS = "osD^v"
"""One fewer than the colours, so that the seventh backend differs from the first."""

WIDTH, HEIGHT = 9.0, 6.0
"""Inches of the picture of one quantity."""

Found = Mapping[str, Any]
Spreads = Mapping[int, tuple[float, float, float]]
"""Median and quartiles by size."""
Curve = Callable[[Any], Any]


@dataclass(frozen=True)
class Quantity:
    """The quantity of a plot: its field, a factor to the unit of its label, and its growth.

    A curve is plotted where the growth is fitted; ratios have none and a linear scale. Values below
    `least` cannot be distinguished from zero, and are shown as open markers.
    """

    field: str
    factor: float
    label: str
    growth: str = ""
    least: float = 0.0


QUANTITIES = {
    "time": Quantity("seconds", 1e3, "time of a call, ms", "time"),
    "ratios": Quantity("ratio", 1.0, "time against {first}"),
    "memory": Quantity(
        "memory",
        1 / MIB,
        f"peak memory, MiB\n(open: below {RESOLUTION / MIB:g})",
        "memory",
        RESOLUTION,
    ),
}
"""The pictures by their names."""


def times(found: Found) -> "Figure":
    """Return the time of a call over length and width: medians, quartiles, fitted curves."""
    return _alone(found, QUANTITIES["time"])


def ratios(found: Found) -> "Figure":
    """Return the time against the first backend's over length and width: medians, quartiles."""
    return _alone(found, QUANTITIES["ratios"])


def memory(found: Found) -> "Figure":
    """Return the peak memory of a call over length and width, with fitted curves."""
    return _alone(found, QUANTITIES["memory"])


def together(found: Found) -> "Figure":
    """Return all pictures below each other."""
    whole = figure(WIDTH, HEIGHT * len(QUANTITIES))
    parts = whole.subfigures(len(QUANTITIES), 1, squeeze=False)[:, 0]
    for part, quantity in zip(parts, QUANTITIES.values(), strict=True):
        _draw(part, found, quantity)
    return whole


def _alone(found: Found, quantity: Quantity) -> "Figure":
    whole = figure(WIDTH, HEIGHT)
    _draw(whole, found, quantity)
    return whole


def _draw(place: "Figure | SubFigure", found: Found, quantity: Quantity) -> None:
    """Draw one pass a row, one sweep a column."""
    passes = list(dict.fromkeys(one["which"] for one in found["measurements"])) or [""]
    grid = place.subplots(len(passes), 2, squeeze=False, sharex="col")
    for row, which in zip(grid, passes, strict=True):
        for axes, over in zip(row, ("length", "width"), strict=True):
            _panel(axes, found, quantity, which, over)
        row[0].set_ylabel(f"{which}\n{_label(found, quantity, which)}", color=GREY)
    series = [panel.get_legend_handles_labels() for panel in grid.flat]
    if named := {
        name: line for lines, names in series for line, name in zip(lines, names, strict=True)
    }:
        place.legend(named.values(), named, loc="outside upper center", ncols=4, **LEGEND)


def _label(found: Found, quantity: Quantity, which: str) -> str:
    first = (one["backend"] for one in found["measurements"] if one["which"] == which)
    return quantity.label.format(first=literal(next(first, "the first")))


def _panel(axes: "Axes", found: Found, quantity: Quantity, which: str, over: str) -> None:
    styles = zip(found["backends"], cycle(COLOURS), cycle(MARKERS), strict=False)
    for name, colour, marker in styles:
        points = _points(found, quantity, name, which, over)
        measurable = {size: one for size, one in points.items() if one[0] >= quantity.least}
        look: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "markersize": 4,
            "label": literal(name),
        }
        if measurable:
            fitted = _fitted(found, quantity, name, which, over)
            _series(axes, quantity, measurable, fitted, look)
        if below := [size for size in points if size not in measurable]:
            least = [quantity.least * quantity.factor] * len(below)
            look["label"] = None if measurable else literal(name)
            axes.plot(below, least, linestyle="none", markerfacecolor="none", **look)
    _furnish(axes, found, over, logarithmic=bool(quantity.growth))


def _series(
    axes: "Axes", quantity: Quantity, points: Spreads, fitted: Curve | None, look: dict[str, Any]
) -> None:
    """Draw medians, a band between the quartiles, and a line: the fitted one where there is one."""
    sizes, spreads = list(points), np.array(list(points.values()))
    medians, low, high = (np.maximum(spreads, quantity.least) * quantity.factor).T
    axes.plot(sizes, medians, linestyle="none" if fitted else "-", **look)
    axes.fill_between(sizes, low, high, color=look["color"], alpha=0.2, linewidth=0)
    if fitted:
        fine = np.geomspace(sizes[0], sizes[-1], 100)
        axes.plot(fine, fitted(fine) * quantity.factor, color=look["color"], linewidth=1)


def _points(found: Found, quantity: Quantity, name: str, which: str, over: str) -> Spreads:
    """Return median and quartiles by size, where they were measured."""
    other = "width" if over == "length" else "length"
    taken = {
        one[over]: one[quantity.field]
        for one in found["measurements"]
        if one["backend"] == name
        and one["which"] == which
        and one[other] == found["plan"][other]
        and one[over] in found["plan"][f"{over}s"]
        and one[quantity.field] is not None
    }
    return {
        size: (taken[size]["median"], taken[size]["low"], taken[size]["high"])
        for size in sorted(taken)
    }


def _fitted(found: Found, quantity: Quantity, name: str, which: str, over: str) -> Curve | None:
    """Return the fitted curve, None where there is none."""
    for one in found["growths"]:
        key = (one["backend"], one["which"], one["over"], one["quantity"])
        if key == (name, which, over, quantity.growth) and one["terms"]:
            a, b, c = one["terms"]
            return lambda size: a + b * size + c * size**2
    return None


def _furnish(axes: "Axes", found: Found, over: str, *, logarithmic: bool) -> None:
    fixed = "width" if over == "length" else "length"
    ticks = found["plan"][f"{over}s"]
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(one) for one in ticks], minor=False)
    axes.xaxis.set_minor_locator(needed("matplotlib.ticker").NullLocator())
    if logarithmic and axes.lines:
        axes.set_yscale("log")
        ticker = needed("matplotlib.ticker")
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(ticker.LogFormatter(labelOnlyBase=False))
    elif not logarithmic:
        axes.axhline(1, color=GREY, linewidth=0.5)
    axes.set_xlabel(f"{over} ({fixed} {found['plan'][fixed]})", color=GREY)
    style_axes(axes)
