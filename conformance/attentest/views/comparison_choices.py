"""The terminal's table of choices: a column a backend where there is room, else a line an option.

No option's name is ever broken but at its hyphens.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.table import Table
from rich.text import Text

from attentest.analysis.identify import MEASURED, Finding
from attentest.analysis.identify.finding import format_value
from attentest.results.wording import PAPER
from attentest.studies.comparison.parts import ChoiceRow

GAP = 2


def choices(rows: Sequence[ChoiceRow], backends: Sequence[str], width: int) -> Table:
    """Return the table of all choices, the paper first, no wider than `width` where it can be."""
    columns = [_column(rows, name, place) for place, name in enumerate((PAPER, *backends))]
    room = width - max((len(row.choice) for row in rows), default=0) - 2 * GAP
    widths = _widths(columns, room)
    return _by_backend(rows, columns, widths) if widths else _by_option(rows, backends)


def _column(rows: Sequence[ChoiceRow], name: str, place: int) -> list[Text]:
    """Return the heading and the cells of the paper (`place` 0) or of a backend."""
    return [Text(name), *(_cells(row)[place] for row in rows)]


def _cells(row: ChoiceRow) -> list[Text]:
    paper = Text("(silent)" if row.paper is None else format_value(row.paper))
    return [paper, *map(_cell, row.findings)]


def _cell(one: Finding) -> Text:
    """Return what is measured; what is declared where that is other or nothing was measured."""
    declared = "-" if one.declared is None else format_value(one.declared)
    if not one.agrees:
        shown = format_value(one.measured) if one.status == MEASURED else one.status
        return Text(f"{shown} ! {declared}", style="bold red")
    if one.status != MEASURED:
        return Text(declared if one.declared is None else f"{declared} ?", style="dim")
    return Text(format_value(one.measured) if one.declared is None else declared)


def _widths(columns: Sequence[Sequence[Text]], room: int) -> list[int]:
    """Return a width for every column, the narrowest as wide as they like; none if they cannot."""
    least = [max(_longest(cell) for cell in column) + GAP for column in columns]
    liked = [max(len(cell.plain) for cell in column) + GAP for column in columns]
    if sum(least) > room:
        return []
    spare, widths = room - sum(least), list(least)
    for place in sorted(range(len(columns)), key=lambda place: liked[place] - least[place]):
        more = min(spare, liked[place] - least[place])
        widths[place] += more
        spare -= more
    return widths


def _longest(cell: Text) -> int:
    """Return the width of the longest piece of `cell` that is not broken."""
    return max(map(len, wrap(cell.plain, 1, break_long_words=False)), default=0)


def _by_backend(
    rows: Sequence[ChoiceRow], columns: Sequence[Sequence[Text]], widths: Sequence[int]
) -> Table:
    table = _empty()
    folded = [
        [_folded(cell, width - GAP) for cell in column]
        for column, width in zip(columns, widths, strict=True)
    ]
    for heading, *_ in folded:
        table.add_column(heading, no_wrap=True)
    for row, *cells in zip(rows, *(column[1:] for column in folded), strict=True):
        table.add_row(*_named(row), *cells)
    return table


def _folded(cell: Text, room: int) -> Text:
    return Text("\n".join(wrap(cell.plain, room, break_long_words=False)), style=cell.style)


def _by_option(rows: Sequence[ChoiceRow], backends: Sequence[str]) -> Table:
    """Return a table that says of every choice who settles it how."""
    table = _empty()
    table.add_column("option", no_wrap=True)
    table.add_column("used by", overflow="fold")
    for row in rows:
        mark, name = _named(row)
        for number, (option, users) in enumerate(_users(row, backends)):
            table.add_row(*(("", "") if number else (mark, name)), option, users)
    return table


def _users(row: ChoiceRow, backends: Sequence[str]) -> Iterator[tuple[Text, str]]:
    """Yield each option that is used, with those who use it, the paper's first."""
    cells = _cells(row)
    for option in {cell.plain: cell for cell in cells}.values():
        names = [
            name
            for name, cell in zip((PAPER, *backends), cells, strict=True)
            if cell.plain == option.plain
        ]
        every = names[-len(backends) :] == list(backends)
        yield option, ", ".join([*names[: -len(backends)], "all"] if every else names)


def _empty() -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    table.add_column("", no_wrap=True)
    table.add_column("choice", no_wrap=True)
    return table


def _named(row: ChoiceRow) -> tuple[str, Text]:
    return ("*" if row.differs else "", Text(row.choice, style="bold cyan" if row.differs else ""))
