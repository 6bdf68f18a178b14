"""The directive `compute`: runs lines of NumPy when the pages are built and draws one result.

    ```{compute} scores
    :rows: the cat sat
    :columns: the cat sat

    scores = query @ key.swapaxes(-1, -2) / np.sqrt(d_k)
    ```

All directives of a page share one namespace, which begins with NumPy and the spec: a page is one
program in pieces. The array named by the argument is drawn, one panel for each head. `rows` and
`columns` label its last two axes. `reference` names an expression; the build fails where the array
differs from its value, so that a page cannot teach another Transformer than the spec describes.
"""

from html import escape
from typing import Any

import numpy as np
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import attentest_spec

WIDTH, HEIGHT, MARGIN = 54, 24, 64
NEGATIVE, POSITIVE, GREY, INK = (214, 96, 77), (67, 147, 195), "#e3e1dc", "#1d1d1b"
TOLERANCE = 1e-12
_PAGES: dict[str, dict[str, Any]] = {}


def drawing(values: np.ndarray, rows: list[str], columns: list[str]) -> str:
    """Return one SVG for every matrix in `values` (.., rows, columns), in a row."""
    matrices = np.atleast_2d(values).reshape(-1, *np.atleast_2d(values).shape[-2:])
    finite = matrices[np.isfinite(matrices)]
    top = float(np.abs(finite).max()) if finite.size else 1.0
    titles = [f"head {number + 1}" for number in range(len(matrices))]
    panels = "".join(
        _panel(matrix, rows, columns, title if len(matrices) > 1 else "", top or 1.0)
        for matrix, title in zip(matrices, titles, strict=True)
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:1.5em;margin:.6em 0">{panels}</div>'


def _panel(matrix: np.ndarray, rows: list[str], columns: list[str], title: str, top: float) -> str:
    count, width = matrix.shape
    left, above = (MARGIN if rows else 1), (HEIGHT if columns else 1) + (18 if title else 0)
    cells = [
        _cell(left + column * WIDTH, above + row * HEIGHT, matrix[row, column], top)
        for row in range(count)
        for column in range(width)
    ]
    names = [
        _label(left - 6, above + (row + 0.5) * HEIGHT, name, "end") for row, name in enumerate(rows)
    ] + [
        _label(left + (column + 0.5) * WIDTH, above - HEIGHT / 2, name, "middle")
        for column, name in enumerate(columns)
    ]
    heading = [_label(left, 9, title, "start")] if title else []
    label = escape("; ".join(" ".join(map(_text, row)) for row in matrix))
    size = f'width="{left + width * WIDTH + 2}" height="{above + count * HEIGHT + 2}"'
    inside = "".join([f"<title>{label}</title>", *heading, *names, *cells])
    return f'<svg {size} role="img" aria-label="{label}" style="max-width:100%">{inside}</svg>'


def _cell(x: float, y: float, value: Any, top: float) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" fill="{_colour(value, top)}" '
        f'stroke="white"/><text x="{x + WIDTH / 2:g}" y="{y + HEIGHT / 2:g}" fill="{INK}" '
        f'font-size="12" text-anchor="middle" dominant-baseline="central">{_text(value)}</text>'
    )


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" fill="currentColor" font-size="12" text-anchor="{anchor}" '
        f'dominant-baseline="central">{escape(text)}</text>'
    )


def _colour(value: Any, top: float) -> str:
    """Return a colour between white, for zero, and the colour of the sign, for the largest."""
    if not np.isfinite(value):
        return GREY
    share = 0.75 * abs(float(value)) / top
    toward = NEGATIVE if value < 0 else POSITIVE
    return "#" + "".join(f"{round(255 + share * (one - 255)):02x}" for one in toward)


def _text(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "T" if value else "F"
    if isinstance(value, np.integer):
        return str(value)
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.2f}".replace("-0.00", "0.00")


class Compute(SphinxDirective):
    """Run the lines, compare the result with the reference, and draw it."""

    required_arguments = 1
    has_content = True
    option_spec = {"rows": str, "columns": str, "reference": str}  # noqa: RUF012  # as docutils expects

    def run(self) -> list[nodes.Node]:
        """Return the code, the shape of the result and its picture."""
        names = _PAGES.setdefault(self.env.docname, {"np": np, **vars(attentest_spec)})
        name, code = self.arguments[0], "\n".join(self.content)
        try:
            exec(code, names)
            values = np.asarray(names[name])
            if reference := self.options.get("reference"):
                difference = float(np.abs(values - eval(reference, names)).max())
                if not difference <= TOLERANCE:
                    raise ValueError(f"{name} differs by {difference:.3g} from {reference}")
            labels = [self.options.get(axis, "").split() for axis in ("rows", "columns")]
            picture = drawing(values, *labels)
        except Exception as failure:
            raise self.error(f"{code}: {failure}") from failure
        text = f"{code}\n# {name}: shape {values.shape}"
        block = nodes.literal_block(text, text, language="python")
        return [block, nodes.raw("", picture, format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("compute", Compute)
    return {"parallel_read_safe": True}
