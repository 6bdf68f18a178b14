"""Tables for the terminal that cut nothing: what is too wide becomes several tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

GAP = 2
"""The columns of the terminal between two columns of a table."""


@dataclass(frozen=True)
class Row:
    """A row: its name, its cells, and the style of both."""

    name: str
    cells: Sequence[Text]
    style: str = ""


def tables(
    corner: str, headings: Sequence[str], rows: Sequence[Row], width: int, *, kept: int = 0
) -> Iterator[Table]:
    """Yield tables of `rows` that fit into `width`, each with some of the columns.

    The first `kept` columns are in each of them. A column that is too wide by itself is folded.
    """
    first = max(len(one) for one in (corner, *(row.name for row in rows)))
    wide = [
        GAP + max(len(heading), *(len(row.cells[place].plain) for row in rows))
        for place, heading in enumerate(headings)
    ]
    room = width - first - sum(wide[:kept])
    for places in _chunks(wide[kept:], room):
        shown = [*range(kept), *(kept + place for place in places)]
        table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
        table.add_column(corner, no_wrap=True)
        for place in shown:
            fits = wide[place] <= room + sum(wide[:kept])
            table.add_column(Text(headings[place]), no_wrap=fits, overflow="fold")
        for row in rows:
            table.add_row(Text(row.name), *(row.cells[place] for place in shown), style=row.style)
        yield table


def _chunks(wide: Sequence[int], room: int) -> Iterator[list[int]]:
    """Yield the places of columns that fit into the room, at least one at a time."""
    places: list[int] = []
    for place, one in enumerate(wide):
        if places and sum(wide[other] for other in places) + one > room:
            yield places
            places = []
        places.append(place)
    if places:
        yield places
