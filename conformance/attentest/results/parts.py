"""Lines of a whole that is wrong inside of a part, which is broken by itself."""

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from attentest.results.verdict import Location, Verdict

Line = tuple[str, int]
Part = tuple[str, str]
"""A file, and the name of a function or class in it."""


def lines_of_parts(broken: Iterable[Verdict]) -> dict[Part, Line]:
    """Return the line in each function or class that is broken by itself, a confirmed one first."""
    found: dict[Part, Line] = {}
    sure: set[Part] = set()
    for one in broken:
        place = one.location
        if place is None or not one.status.contradicts or _definition(place) != _name(one):
            continue
        part = place.file, _name(one)
        if part not in found or (place.confirmed and part not in sure):
            found[part] = place.file, place.line
        sure |= {part} if place.confirmed else set()
    return found


def line_of_part(verdict: Verdict, lines: Mapping[Part, Line]) -> Line | None:
    """Return the line of a part that is broken by itself, where a whole is wrong inside of it."""
    place = verdict.location
    if place is None or not verdict.status.contradicts or _definition(place) == _name(verdict):
        return None
    return lines.get((place.file, _definition(place)))


def _definition(place: Location) -> str:
    """Return the name of the function or class of the file that has the line, "" for none."""
    found = lines_of_definitions(place.file).items()
    return next((name for name, lines in found if place.line in lines), "")


@cache
def lines_of_definitions(path: str) -> Mapping[str, range]:
    """Return the lines of the functions and classes of a file, {} where it cannot be read."""
    try:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return {}
    return {
        one.name: range(one.lineno, (one.end_lineno or one.lineno) + 1)
        for one in tree.body
        if isinstance(one, ast.FunctionDef | ast.ClassDef)
    }


def _name(verdict: Verdict) -> str:
    return verdict.backend.rpartition(":")[2]
