"""Draws one panel, correct or wrong, as SVG for light and dark pages.

Text and lines have the text colour of the page (`currentColor`). Cells are opaque, and their
colours are distinguishable without red and green.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from io import StringIO

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from palette import HIDDEN, KEEP, NEGATIVE, PAPER, POSITIVE
from views import SMALL, Pair, View

from attentest_spec.setting import Array

INK = "#010203"
"""Placeholder for the text colour of the page until the SVG is written."""
FRAME = "#d55e00"
LINES = ("#2f8fd0", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999")
MASK_COLOURS = ListedColormap([HIDDEN, KEEP])
SIGNED = LinearSegmentedColormap.from_list(
    "signed", ["#8c2d1b", NEGATIVE, PAPER, POSITIVE, "#1f4e79"]
)
GROWING = colormaps["Blues"]
STYLE = {
    "font.size": 8,
    "font.sans-serif": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "hatch.linewidth": 0.7,
}
CELL = 0.31
"""Size of a cell in inches."""
SMALLER = 7.5
"""Font size in cells, in points."""
NUMBERED = 8
"""Largest number of rows and columns for which numbers are written into the cells."""
MARGINS = (0.4, 0.4, 0.06, 0.08)
"""Margins in inches: left, below, right and above."""
SUM = 0.44
"""Width in inches of the sums on the right of the rows."""
TICKS = 0.2
"""Width in inches of the tick labels on the left of a plot."""
PLOTS = {"spread": (2.3, 1.6), "curves": (1.7, 1.5), "table": (2.3, 1.6)}
"""Sizes in inches of panels that do not consist of cells of fixed size."""


def draw(view: View, pair: Pair, values: Array, name: str) -> str:
    """Return `values`, one side of `pair`, as SVG; `name` makes its ids unique on the page."""
    with rc_context(STYLE | {"svg.hashsalt": name}):
        PANELS[view.kind.panel](axes := _axes(view, values), pair, values)
        axes.set_xlabel(view.columns)
        axes.set_ylabel(view.rows)
        return _svg(axes.figure)


def difference(view: View, pair: Pair, name: str) -> str:
    """Return the wrong values minus the correct ones as SVG."""
    change = pair.wrong - pair.right
    # Curves have their own scale, so that a small difference is visible.
    scale = replace(pair, right=change, wrong=change) if view.kind.panel == "curves" else pair
    return draw(view, scale, change, name)


def _axes(view: View, values: Array) -> Axes:
    rows, columns = values.shape
    width, height = PLOTS.get(view.kind.panel, (CELL * columns, CELL * rows))
    left, below, right, above = MARGINS
    left += TICKS * (view.kind.panel in ("spread", "curves"))
    right += SUM * (view.kind.panel == "weights")
    outer = (left + width + right, below + height + above)
    figure = Figure(figsize=outer)
    return figure.add_axes((left / outer[0], below / outer[1], width / outer[0], height / outer[1]))


def _svg(figure: Figure) -> str:
    """Return the figure as SVG without a file header and without fixed ids."""
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(out := StringIO(), format="svg", transparent=True, metadata=nothing)
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r" font-family: [^;]*;", "", svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    return re.sub(r"\s*\n\s*", "\n", svg).strip()


# Cells -------------------------------------------------------------------------------------------


def _cells(axes: Axes, values: Array, colours: Colormap, low: float, high: float) -> None:
    """Draw the cells, first row on top, and number both axes from 1."""
    axes.imshow(values, cmap=colours, vmin=low, vmax=high, interpolation="none", aspect="auto")
    for axis, count in ((axes.xaxis, values.shape[1]), (axes.yaxis, values.shape[0])):
        step = 1 if count <= NUMBERED else 10
        axis.set_ticks(range(0, count, step), [str(1 + one) for one in range(0, count, step)])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _write(axes: Axes, values: Array, share: Array) -> None:
    """Write the numbers into the cells, in white on dark cells (`share` near 1)."""
    if max(values.shape) > NUMBERED:
        return
    for (row, column), value in np.ndenumerate(values):
        colour = "white" if share[row, column] > 0.55 else "#1d1d1b"
        axes.text(
            column, row, _text(value), color=colour, ha="center", va="center", fontsize=SMALLER
        )


def _text(value: float | bool) -> str:
    if isinstance(value, bool | np.bool_):
        return "T" if value else "F"
    if not np.isfinite(value):
        return {np.inf: "∞", -np.inf: "-∞"}.get(float(value), "NaN")
    return "0" if abs(value) < SMALL else f"{value:.2f}" if abs(value) < 9.995 else f"{value:.0f}"


def _percent(share: float) -> str:
    return "NaN" if np.isnan(share) else "<1" if share < 0.01 else f"{100 * share:.0f}"


def _frame(axes: Axes, cells: Array, **how: object) -> None:
    for row, column in np.argwhere(cells):
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, **how))


def _frame_changed(axes: Axes, pair: Pair, values: Array) -> None:
    """Frame the changed cells in the wrong panel."""
    if values is pair.wrong:
        _frame(axes, pair.changed, edgecolor=FRAME, linewidth=2.0)


def _largest(*matrices: Array) -> float:
    """Return the largest finite absolute value, the end of the scale."""
    finite = np.concatenate([np.abs(one[np.isfinite(one)]).ravel() for one in matrices])
    return float(finite.max(initial=SMALL))


def _mask(axes: Axes, pair: Pair, values: Array) -> None:
    _cells(axes, values.astype(bool), MASK_COLOURS, 0, 1)
    _frame(axes, np.ones(values.shape, dtype=bool), edgecolor="white", linewidth=0.8)
    whole = values.astype(int) if values.dtype.kind in "iu" else values
    _write(axes, whole, np.zeros(values.shape))
    _frame_changed(axes, pair, values)


def _weights(axes: Axes, pair: Pair, values: Array) -> None:
    _cells(axes, values, GROWING, 0, 1)
    if pair.hidden is not None:
        _frame(axes, pair.hidden, edgecolor="#7f7f7f", hatch="////", linewidth=0)
    _write(axes, values, values)
    for row, total in enumerate(values.sum(axis=1)):
        axes.text(values.shape[1] - 0.35, row, f"= {total:.2f}", va="center", fontsize=SMALLER)


def _influence(axes: Axes, pair: Pair, values: Array) -> None:
    changed = ~(np.abs(values) < SMALL)
    high = _largest(pair.right, pair.wrong)
    _cells(axes, np.where(changed, values, np.nan), GROWING, -0.3 * high, high)
    _frame(axes, np.ones(values.shape, dtype=bool), edgecolor=INK, linewidth=0.3)
    for row, column in np.argwhere(changed):
        value = values[row, column]
        colour = "white" if value > 0.4 * high else "#1d1d1b"
        axes.text(
            column,
            row,
            _percent(value / high),
            color=colour,
            ha="center",
            va="center",
            fontsize=SMALLER,
        )
    _frame_changed(axes, pair, values)


def _values(axes: Axes, pair: Pair, values: Array) -> None:
    high = _largest(pair.right, pair.wrong)
    _cells(axes, values, SIGNED, -high, high)
    _write(axes, values, np.abs(values) / high)


# Plots -------------------------------------------------------------------------------------------


def _level(axes: Axes, pair: Pair) -> None:
    """Set the same scale for both sides, and draw the zero line."""
    both = np.concatenate([pair.right.ravel(), pair.wrong.ravel()])
    margin = 0.06 * np.ptp(both)
    axes.set_ylim(both.min() - margin, both.max() + margin)
    axes.axhline(0.0, color=INK, linewidth=0.4)
    axes.spines[["top", "right"]].set_visible(False)


def _spread(axes: Axes, pair: Pair, values: Array) -> None:
    places = np.arange(1, len(values) + 1)
    means, deviations = values.mean(axis=1), values.std(axis=1)
    axes.plot(np.repeat(places, values.shape[1]) - 0.12, values.ravel(), "o", ms=3, c=LINES[0])
    axes.errorbar(places + 0.12, means, deviations, fmt="_", c=FRAME, capsize=3, ms=8)
    for place, mean, deviation in zip(places, means, deviations, strict=True):
        axes.text(place + 0.18, mean, f"{deviation:.2f}", va="bottom", fontsize=SMALLER)
    axes.set_xticks(places)
    axes.set_xlim(0.5, len(values) + 0.5)
    _level(axes, pair)


def _curves(axes: Axes, pair: Pair, values: Array) -> None:
    for line, colour in zip(values.T, LINES, strict=False):
        axes.plot(pair.across, line, color=colour, linewidth=1.4)
    _level(axes, pair)


PANELS: Mapping[str, Callable[[Axes, Pair, Array], None]] = {
    "mask": _mask,
    "weights": _weights,
    "influence": _influence,
    "values": _values,
    "table": _values,
    "spread": _spread,
    "curves": _curves,
}
