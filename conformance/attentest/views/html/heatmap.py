"""Pictures of a report: heat maps as compact vector graphics."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEVELS = 16
"""Steps of the colour scale."""

SIDE = 176
"""Pixels that a picture is wide, and at most high."""

LEGIBLE = 600
"""Numbers that a picture may have to be written out as a table as well."""


@dataclass(frozen=True)
class Shade:
    """All cells of one colour: `sign` is "positive", "negative" or "unknown", `outline` a path."""

    sign: str
    strength: float
    outline: str


@dataclass(frozen=True)
class Picture:
    """A matrix as a picture, one unit a cell; `scale` is the value of the strongest colour."""

    backend: str
    kind: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Sequence[Sequence[float | None]]
    scale: float
    shades: tuple[Shade, ...]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in pixels; cells are square, or wider than high where rows are many."""
        width, height = len(self.columns) or 1, len(self.rows) or 1
        unit = SIDE / width
        return SIDE, round(height * min(unit, SIDE / height), 2)

    @property
    def table(self) -> bool:
        """Whether it is small enough for its numbers to be written out."""
        return len(self.rows) * len(self.columns) <= LEGIBLE


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
        tuple(_shades(values, scale or 1.0)),
    )


def _names(given: Sequence[Any] | None, number: int) -> Iterator[str]:
    """Yield a name for each row or column: what is given, else its number."""
    names = list(given or ())
    for place in range(number):
        yield str(names[place]) if place < len(names) else str(place)


def _shades(values: Sequence[Sequence[float | None]], scale: float) -> Iterator[Shade]:
    """Yield the cells of each colour; a run of equal cells is one rectangle."""
    outlines: defaultdict[int | None, list[str]] = defaultdict(list)
    for top, row in enumerate(values):
        steps = [None if one is None else round(one / scale * LEVELS) for one in row]
        for left, length, step in _runs(steps):
            outlines[step].append(f"M{left} {top}h{length}v1h-{length}z")
    for step, pieces in outlines.items():
        sign = "unknown" if step is None else "negative" if step < 0 else "positive"
        yield Shade(sign, abs(step or 0) / LEVELS, "".join(pieces))


def _runs(steps: Sequence[int | None]) -> Iterator[tuple[int, int, int | None]]:
    """Yield start, length and step of each run of equal steps."""
    start = 0
    for place in range(1, len(steps) + 1):
        if place == len(steps) or steps[place] != steps[start]:
            yield start, place - start, steps[start]
            start = place
