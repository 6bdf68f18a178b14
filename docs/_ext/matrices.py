"""Draws matrices as small SVG grids with values in the cells, for light and dark pages."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

WIDTH, HEIGHT, MARGIN = 54, 24, 64
NEGATIVE, POSITIVE, GREY, INK = (214, 96, 77), (67, 147, 195), "#e3e1dc", "#1d1d1b"


def drawing(
    values: np.ndarray,
    colours: np.ndarray,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    titles: Sequence[str] = (),
) -> str:
    """Return one SVG for every matrix in `values` (.., rows, columns), in a row.

    `colours` holds the colour of every cell, in the shape of `values`; `rows` and `columns` label
    the last two axes, `titles` the matrices.
    """
    shape = np.atleast_2d(values).shape[-2:]
    panels = zip(values.reshape(-1, *shape), colours.reshape(-1, *shape), strict=True)
    drawn = "".join(
        _panel(matrix, shades, rows, columns, titles[number] if titles else "")
        for number, (matrix, shades) in enumerate(panels)
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:1.5em;margin:.6em 0">{drawn}</div>'


def by_sign(values: np.ndarray) -> np.ndarray:
    """Return a colour for every value: white for zero, that of its sign for the largest."""
    finite = values[np.isfinite(values)]
    top = float(np.abs(finite).max()) if finite.size else 0.0
    flat = [_shade(float(value), top or 1.0) for value in values.ravel()]
    return np.array(flat).reshape(values.shape)


def _shade(value: float, top: float) -> str:
    if not np.isfinite(value):
        return GREY
    share = 0.75 * abs(value) / top
    toward = NEGATIVE if value < 0 else POSITIVE
    return "#" + "".join(f"{round(255 + share * (one - 255)):02x}" for one in toward)


def _panel(
    matrix: np.ndarray, shades: np.ndarray, rows: Sequence[str], columns: Sequence[str], title: str
) -> str:
    count, width = matrix.shape
    left = MARGIN if rows else 1
    above = (HEIGHT if columns else 1) + (18 if title else 0)
    names = [
        _label(left - 6, above + (row + 0.5) * HEIGHT, name, "end") for row, name in enumerate(rows)
    ] + [
        _label(left + (column + 0.5) * WIDTH, above - HEIGHT / 2, name, "middle")
        for column, name in enumerate(columns)
    ]
    cells = [
        _cell(left + column * WIDTH, above + row * HEIGHT, matrix[row, column], shades[row, column])
        for row in range(count)
        for column in range(width)
    ]
    heading = [_label(left, 9, title, "start")] if title else []
    label = escape("; ".join(" ".join(map(text, row)) for row in matrix))
    size = f'width="{left + width * WIDTH + 2}" height="{above + count * HEIGHT + 2}"'
    inside = "".join([f"<title>{label}</title>", *heading, *names, *cells])
    return f'<svg {size} role="img" aria-label="{label}">{inside}</svg>'


def _cell(x: float, y: float, value: Any, colour: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" fill="{colour}" '
        f'stroke="white"/><text x="{x + WIDTH / 2:g}" y="{y + HEIGHT / 2:g}" fill="{INK}" '
        f'font-size="12" text-anchor="middle" dominant-baseline="central">{text(value)}</text>'
    )


def _label(x: float, y: float, name: str, anchor: str) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" fill="currentColor" font-size="12" text-anchor="{anchor}" '
        f'dominant-baseline="central">{escape(name)}</text>'
    )


def text(value: Any) -> str:
    """Return a value as it is written into a cell: T and F, whole numbers, or two decimals."""
    if isinstance(value, bool | np.bool_):
        return "T" if value else "F"
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    if float(value).is_integer():
        return f"{value:g}"
    return f"{value:.2f}".replace("-0.00", "0.00")
