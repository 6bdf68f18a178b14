"""Pictures of a cost, drawn from its plain values, as a result file has them.

Everything is readable on light and on dark paper: the background is transparent, frames and texts
are grey, and the colours can be told apart by the colour-blind, as can the markers.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from attentest.cost.memory import RESOLUTION
from attentest.report.extra import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

GREY = "#808080"

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""The palette of Okabe and Ito, without black and without a yellow that white paper swallows."""

MARKERS = "osD^vP"

Found = Mapping[str, Any]


@dataclass(frozen=True)
class Quantity:
    """What a picture shows: the name of its field, a factor to the unit of its label, its growth.

    A curve is drawn where the growth is fitted; ratios have none and a straight scale. What is not
    above `least` cannot be told from nothing, and is left out.
    """

    field: str
    factor: float
    label: str
    growth: str = ""
    least: float = 0.0


QUANTITIES = {
    "time": Quantity("seconds", 1e3, "time of a call, ms", "time"),
    "ratios": Quantity("ratio", 1.0, "time against {first}"),
    "memory": Quantity("memory", 2.0**-20, "peak memory, MiB", "memory", RESOLUTION),
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
    figure = _figure(len(QUANTITIES))
    parts = figure.subfigures(len(QUANTITIES), 1, squeeze=False)[:, 0]
    for part, quantity in zip(parts, QUANTITIES.values(), strict=True):
        _draw(part, found, quantity)
    return figure


def drawn(figure: "Figure", kind: str) -> bytes:
    """Return `figure` as a file of `kind`: "svg", in which texts are texts, or "png"."""
    file = io.BytesIO()
    with needed("matplotlib").rc_context({"svg.fonttype": "none", "svg.hashsalt": "attentest"}):
        figure.savefig(file, format=kind, transparent=True, dpi=150)
    return file.getvalue()


def _alone(found: Found, quantity: Quantity) -> "Figure":
    figure = _figure(1)
    _draw(figure, found, quantity)
    return figure


def _figure(rows: int) -> "Figure":
    figure: Figure = needed("matplotlib.figure").Figure((9.0, 6.0 * rows), layout="constrained")
    return figure


def _draw(place: "Figure | SubFigure", found: Found, quantity: Quantity) -> None:
    """Draw one pass a row, one sweep a column."""
    passes = list(dict.fromkeys(one["which"] for one in found["measurements"])) or [""]
    grid = place.subplots(len(passes), 2, squeeze=False, sharex="col")
    for row, which in zip(grid, passes, strict=True):
        for axes, over in zip(row, ("length", "width"), strict=True):
            _panel(axes, found, quantity, which, over)
        row[0].set_ylabel(f"{which}\n{_label(found, quantity)}", color=GREY)
    handles, labels = grid[0][0].get_legend_handles_labels()
    if handles:
        place.legend(
            handles, labels, loc="outside upper center", ncols=4, frameon=False, labelcolor=GREY
        )


def _label(found: Found, quantity: Quantity) -> str:
    return quantity.label.format(first=next(iter(found["backends"]), "the first"))


def _panel(axes: "Axes", found: Found, quantity: Quantity, which: str, over: str) -> None:
    styles = zip(found["backends"], cycle(COLOURS), cycle(MARKERS), strict=False)
    for name, colour, marker in styles:
        points = _points(found, quantity, name, which, over)
        if not points:
            continue
        sizes, spreads = list(points), np.array(list(points.values())) * quantity.factor
        fitted = _fitted(found, quantity, name, which, over)
        axes.plot(
            sizes,
            spreads[:, 0],
            marker=marker,
            markersize=4,
            color=colour,
            linestyle="none" if fitted else "-",
            label=name,
        )
        axes.fill_between(sizes, spreads[:, 1], spreads[:, 2], color=colour, alpha=0.2, linewidth=0)
        if fitted:
            fine = np.geomspace(sizes[0], sizes[-1], 100)
            axes.plot(fine, fitted(fine) * quantity.factor, color=colour, linewidth=1)
    _furnish(axes, found, over, logarithmic=bool(quantity.growth))


def _points(
    found: Found, quantity: Quantity, name: str, which: str, over: str
) -> dict[int, tuple[float, float, float]]:
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
        and one[quantity.field]["median"] > quantity.least
    }
    return {
        size: (taken[size]["median"], taken[size]["low"], taken[size]["high"])
        for size in sorted(taken)
    }


def _fitted(
    found: Found, quantity: Quantity, name: str, which: str, over: str
) -> "Callable[[Any], Any] | None":
    """Return the fitted curve, None where there is none."""
    for one in found["growths"]:
        told = (one["backend"], one["which"], one["over"], one["quantity"])
        if told == (name, which, over, quantity.growth) and one["terms"]:
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
    axes.tick_params(colors=GREY, which="both")
    axes.patch.set_alpha(0)
    axes.grid(color=GREY, alpha=0.2, linewidth=0.5)
    for spine in axes.spines.values():
        spine.set_color(GREY)
