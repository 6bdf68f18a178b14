"""HTML tables for notebooks, with everything in them escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from attentest.results.text import line

LONGEST = 2000
"""Characters of a cell that are shown."""


def table(headings: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table; cells are escaped, and None is an empty cell.

    Raises ValueError for a row that has more or fewer cells than there are headings.
    """
    head = "".join(f'<th scope="col">{_cell(one)}</th>' for one in headings)
    body = "".join(_row(row, len(headings)) for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(row: Sequence[object], width: int) -> str:
    if len(row) != width:
        raise ValueError(f"A row of {len(row)} cells stands under {width} headings.")
    return f"<tr>{''.join(f'<td>{_cell(one)}</td>' for one in row)}</tr>"


def _cell(value: object) -> str:
    return "" if value is None else escape(line(str(value), LONGEST))


def paragraph(text: str) -> str:
    """Return `text` as an HTML paragraph, escaped."""
    return f"<p>{_cell(text)}</p>"
