"""Questions about a whole, and lines in it, that follow from a mistake in one of its parts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attentest.results.verdict import Verdict, lines_of_definitions

if TYPE_CHECKING:  # causes are grouped by the lines of parts
    from attentest.results.causes import Cause

Line = tuple[str, int]
Part = tuple[str, str]
"""A file, and the name of a function or class in it."""

_NAMED = re.compile(r" (?P<file>[^\s/]+\.py):(?P<line>\d+) \(")


def followed_by(question: str, found: Sequence["Cause"]) -> str:
    """Return where the step is that a question names as the first that differs, "" for elsewhere.

    It follows from a cause that has this line, or that breaks the function or class around it.
    """
    causes = [(n, one) for n, one in enumerate(found, 1) if one.severity.fails_run]
    named = [(one["file"], int(one["line"])) for one in _NAMED.finditer(question)]
    for number, cause in causes:
        if (Path(cause.file).name, cause.line) in named:
            return f"on the line of cause {number}"
    for number, cause in causes:
        name = cause.head.backend.rpartition(":")[2]
        if any(_is_inside(cause.file, file, line, name) for file, line in named):
            return f"in {name}, which cause {number} breaks"
    return ""


def _is_inside(path: str, file: str, line: int, name: str) -> bool:
    """Say whether a line of `file`, which is at `path`, is one of what has this name there."""
    return Path(path).name == file and line in lines_of_definitions(path).get(name, ())


def lines_of_parts(broken: Iterable[Verdict]) -> dict[Part, Line]:
    """Return the line in each function or class that is broken by itself, a confirmed one first."""
    found: dict[Part, Line] = {}
    sure: set[Part] = set()
    for one in broken:
        place, name = one.location, _name(one)
        if place is None or not one.status.contradicts or place.definition != name:
            continue
        part = place.file, name
        if part not in found or (place.confirmed and part not in sure):
            found[part] = place.file, place.line
        sure |= {part} if place.confirmed else set()
    return found


def line_of_part(verdict: Verdict, lines: Mapping[Part, Line]) -> Line | None:
    """Return the line of a part that is broken by itself, where a whole is wrong inside of it."""
    place = verdict.location
    if place is None or not verdict.status.contradicts or place.definition == _name(verdict):
        return None
    return lines.get((place.file, place.definition))


def _name(verdict: Verdict) -> str:
    return verdict.backend.rpartition(":")[2]
