"""Pictures of a report: matrices as compact vector graphics, with named axes.

A colour has one meaning in all of them: green is what a query may attend to and grey what is
hidden from it, blue is a number above zero and red one below.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEVELS = 16
"""Steps of the colour scale."""

SIDE = 216
"""Pixels that the cells of a picture are wide, and at most high."""

CELL = 30
"""Pixels that a cell is wide at most."""

LETTER = 6.5
"""Pixels that a letter of a name takes."""

ROOM = 14
"""Pixels that a line of names takes at least."""

MASK = "mask"
"""The kind of the pictures whose numbers say whether a query may attend to a key."""

LEGIBLE = 600
"""Numbers that a picture may have to be written out as a table as well."""

AXES = {"positions": ("position", "column")}
"""The meaning of rows and columns, by the kind of a picture; queries and keys in all others."""


@dataclass(frozen=True)
class Shade:
    """All cells of one colour, `outline` is their path.

    `sign` is "keep" or "hidden" in a mask, and "positive", "negative" or "unknown" elsewhere.
    """

    sign: str
    strength: float
    outline: str


@dataclass(frozen=True)
class Name:
    """The name of a row or a column, and its middle in pixels from the first cell."""

    text: str
    middle: float


@dataclass(frozen=True)
class Picture:
    """A matrix as a picture; `scale` is the value of the strongest colour."""

    backend: str
    kind: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Sequence[Sequence[float | None]]
    scale: float
    shades: tuple[Shade, ...]

    @property
    def axes(self) -> tuple[str, str]:
        """The meaning of a row and of a column."""
        return AXES.get(self.kind, ("query", "key"))

    @property
    def cell(self) -> tuple[float, float]:
        """Width and height of a cell in pixels; they are square, or flat where rows are many."""
        width = min(CELL, SIDE / (len(self.columns) or 1))
        return round(width, 2), round(min(width, SIDE / (len(self.rows) or 1)), 2)

    @property
    def margins(self) -> tuple[float, float]:
        """Pixels on the left of the cells, and above them, for names and titles."""
        longest = max(map(len, self.rows), default=0)
        return round(ROOM + 8 + LETTER * longest, 2), 2.0 * ROOM + 6

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the whole in pixels."""
        (left, above), (width, height) = self.margins, self.cell
        across = max(width * len(self.columns), LETTER * (2 + len(self.axes[1])))
        down = max(height * len(self.rows), LETTER * (2 + len(self.axes[0])))
        return round(left + across + 1, 2), round(above + down + 1, 2)

    @property
    def row_names(self) -> list[Name]:
        """The names on the left, as many as have room."""
        return list(_placed(self.rows, self.cell[1], ROOM))

    @property
    def column_names(self) -> list[Name]:
        """The names above, as many as have room."""
        longest = max(map(len, self.columns), default=0)
        return list(_placed(self.columns, self.cell[0], LETTER * longest + 4))

    @property
    def table(self) -> bool:
        """Whether it is small enough for its numbers to be written out."""
        return len(self.rows) * len(self.columns) <= LEGIBLE


def _placed(names: Sequence[str], unit: float, room: float) -> Iterator[Name]:
    """Yield every name, or every second, third .. where they would overlap."""
    step = max(1, -int(-room // unit)) if unit else 1
    for place in range(0, len(names), step):
        yield Name(names[place], round((place + 0.5) * unit, 2))


def picture(entry: Mapping[str, Any]) -> Picture:
    """Return the picture of one entry of a comparison."""
    values = [list(row) for row in entry["values"]]
    width = len(values[0]) if values else 0
    if any(len(row) != width for row in values):
        raise ValueError("the rows of a picture are not of one length")
    scale = max((abs(one) for row in values for one in row if one is not None), default=0.0)
    return Picture(
        str(entry["backend"]),
        str(entry["kind"]),
        str(entry["title"]),
        tuple(_names(entry.get("rows"), len(values))),
        tuple(_names(entry.get("columns"), width)),
        values,
        scale,
        tuple(_shades(values, scale or 1.0, mask=entry["kind"] == MASK)),
    )


def _names(given: Sequence[Any] | None, number: int) -> Iterator[str]:
    """Yield a name for each row or column: what is given, else its number."""
    names = list(given or ())
    for place in range(number):
        yield str(names[place]) if place < len(names) else str(place)


def _shades(
    values: Sequence[Sequence[float | None]], scale: float, *, mask: bool
) -> Iterator[Shade]:
    """Yield the cells of each colour; a run of equal cells is one rectangle."""
    outlines: defaultdict[int | None, list[str]] = defaultdict(list)
    for top, row in enumerate(values):
        steps = [None if one is None else round(one / scale * LEVELS) for one in row]
        for left, length, step in _runs(steps):
            outlines[step].append(f"M{left} {top}h{length}v1h-{length}z")
    for step, pieces in outlines.items():
        strength = abs(step or 0) / LEVELS
        if step is None:
            yield Shade("unknown", 1.0, "".join(pieces))
        elif mask:
            yield Shade("keep" if step else "hidden", 1.0, "".join(pieces))
        elif step:
            yield Shade("negative" if step < 0 else "positive", strength, "".join(pieces))


def _runs(steps: Sequence[int | None]) -> Iterator[tuple[int, int, int | None]]:
    """Yield start, length and step of each run of equal steps."""
    start = 0
    for place in range(1, len(steps) + 1):
        if place == len(steps) or steps[place] != steps[start]:
            yield start, place - start, steps[start]
            start = place
