"""Draws matrices as small SVG files with values in the cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from palette import HIDDEN, INK, NEGATIVE, PAPER, POSITIVE

WIDTH, HEIGHT, MARGIN, BORDER = 54, 24, 64, 6


@dataclass(frozen=True)
class Drawing:
    """A matrix as an SVG file, and its values in words."""

    svg: str
    words: str


def drawings(
    name: str,
    values: np.ndarray,
    colours: np.ndarray,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    titles: Sequence[str] = (),
) -> list[Drawing]:
    """Return a drawing for every matrix in `values` (.., rows, columns).

    `colours` holds the colour of every cell, in the shape of `values`; `rows` and `columns` label
    the last two axes, `titles` the matrices. `name` begins the words.
    """
    shape = np.atleast_2d(values).shape[-2:]
    panels = zip(values.reshape(-1, *shape), colours.reshape(-1, *shape), strict=True)
    return [
        Drawing(
            _panel(matrix, shades, rows, columns, titles[number] if titles else ""),
            ", ".join([name, *titles[number : number + 1]]) + f": {_words(matrix)}",
        )
        for number, (matrix, shades) in enumerate(panels)
    ]


def _words(matrix: np.ndarray) -> str:
    return "; ".join(" ".join(map(text, row)) for row in matrix)


def by_sign(values: np.ndarray) -> np.ndarray:
    """Return a colour for every value: white for zero, that of its sign for the largest."""
    finite = values[np.isfinite(values)]
    top = float(np.abs(finite).max()) if finite.size else 0.0
    flat = [_shade(float(value), top or 1.0) for value in values.ravel()]
    return np.array(flat).reshape(values.shape)


def _shade(value: float, top: float) -> str:
    if not np.isfinite(value):
        return HIDDEN
    share = 0.75 * abs(value) / top
    towards = bytes.fromhex((NEGATIVE if value < 0 else POSITIVE)[1:])
    return "#" + "".join(f"{round(255 + share * (one - 255)):02x}" for one in towards)


def _panel(
    matrix: np.ndarray, shades: np.ndarray, rows: Sequence[str], columns: Sequence[str], title: str
) -> str:
    count, width = matrix.shape
    left = BORDER + (MARGIN if rows else 0)
    above = BORDER + (HEIGHT if columns else 0) + (18 if title else 0)
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
    heading = [_label(left, BORDER + 9, title, "start")] if title else []
    size = f"{left + width * WIDTH + BORDER} {above + count * HEIGHT + BORDER}"
    across, down = size.split()
    inside = "\n".join([f"<title>{escape(_words(matrix))}</title>", *heading, *names, *cells])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}" '
        f'viewBox="0 0 {size}" font-family="sans-serif" font-size="12" fill="{INK}">\n'
        f'<rect width="{across}" height="{down}" rx="4" fill="{PAPER}"/>\n{inside}\n</svg>\n'
    )


def _cell(x: float, y: float, value: Any, colour: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" fill="{colour}" '
        f'stroke="{PAPER}"/><text x="{x + WIDTH / 2:g}" y="{y + HEIGHT / 2:g}" '
        f'text-anchor="middle" dominant-baseline="central">{text(value)}</text>'
    )


def _label(x: float, y: float, name: str, anchor: str) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" '
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
