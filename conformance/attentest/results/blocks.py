"""Causes in words: one block of lines for each, made to fit the width of a terminal."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from os.path import relpath
from pathlib import Path
from textwrap import wrap

from attentest.results.causes import Cause, sentence
from attentest.results.text import counted
from attentest.results.verdict import Counterexample, LikelyCause, Location, Status
from attentest_spec.clauses import clauses

WIDTH = 80
"""The width where no terminal says another one."""

ROWS = 2
"""The largest number of rows that are shown of an array."""

_INDENT = "   "
_TOGETHER = re.compile(r"\((?:\d+, ?)+\d*\)|\b\d+ (?=[a-z])")
"""A shape, and a number with what it counts."""

HELD = "\xa0"
"""A space at which no line ends."""

_NUMBER = re.compile(r"[^\s\[\],]+")

UNSOUGHT = "the likely cause was not found"
"""The beginning of the note of a verdict whose diagnosis was ended."""


def block(
    cause: Cause,
    number: int = 0,
    width: int = WIDTH,
    *,
    written: Path | None = None,
    assumed: Iterable[str] = (),
    name: bool = False,
) -> str:
    """Return the block of a cause: its line and text, the clause, an example, what else it breaks.

    It begins with `number`, where there is one.
    `written` is the file with the reproduction, `assumed` are the sentences that it depends on,
    `name` says that the backend is named.
    """
    warns = cause.severity is Status.WARNING
    lines = [
        *_heading(cause, number, width),
        *_why(cause, width),
        *_demand(cause, width, name=name),
        *(() if warns else _example(cause, width)),
        *cut([line for one in assumed for line in _inside(one, width)], 2),
        *_others(cause, width, name=name),
        *(_inside(f"reproduction: {written}", width) if written else ()),
    ]
    return "\n".join(lines)


def warnings(several: Sequence[Cause], numbers: Sequence[int], width: int = WIDTH) -> str:
    """Return the block of warnings: the clauses that are not followed."""
    names = list(dict.fromkeys(slug for one in several for slug in one.clauses))
    count = f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"
    text = f"{count}  warning: does not follow {', '.join(names)}"
    return "\n".join(cut(folded(text, width, indent=_INDENT), 4))


def followers(several: Sequence[Cause], numbers: Sequence[int], width: int = WIDTH) -> str:
    """Return the block of several clauses that may fail because of the causes before them."""
    names = list(dict.fromkeys(slug for one in several for slug in one.clauses))
    text = (
        f"{numbers[0]}-{numbers[-1]}  without a line or a known mistake of their own: "
        f"{', '.join(names)}; they may follow from what comes before: mend it, and check again"
    )
    return "\n".join(cut(folded(text, width, indent=_INDENT), 4))


def place(location: Location) -> str:
    """Return the file and the line; a file below the current folder by its relative path."""
    return f"{near(location.file)}:{location.line}"


def near(file: str) -> str:
    """Return the path of a file, relative where it lies below the current folder."""
    try:
        shorter = relpath(file)
    except ValueError:  # on another drive
        return file
    return file if shorter.startswith("..") else shorter


def fit(cause: LikelyCause) -> str:
    """Return how well a likely cause gives the results."""
    names = " with ".join(cause.names)
    if cause.missed:
        return f"{names}: {counted(cause.missed, 'result')} not reproduced"
    remaining = f" to {cause.difference:.1g}" if cause.difference else ""
    return f"{names} gives the same results{remaining}"


def _heading(cause: Cause, number: int, width: int) -> list[str]:
    begin = f"{number}  " if number else ""
    if cause.location:
        begin += f"{place(cause.location)}  "
    elif cause.head.status is not Status.VIOLATION:
        begin += f"{cause.head.status}: "
    elif cause.exact:
        begin += "likely cause: "
    return cut(folded(f"{begin}{cause.words or cause.text}", width, indent=_INDENT), 3)


def _inside(text: str, width: int) -> list[str]:
    """Return the lines of a paragraph of a block."""
    return folded(text, width, begin=_INDENT, indent=_INDENT)


def _why(cause: Cause, width: int) -> Iterator[str]:
    """Yield the line of code, whether it is confirmed, and the known mistakes that fit."""
    if cause.location:
        yield from cut(_inside(f"{cause.location.line} | {cause.location.code.strip()}", width), 2)
        yield from _inside(certainty(cause), width)
    lost = (one for one in cause.head.notes if one.startswith(UNSOUGHT))
    for one in (*known(cause), *lost):
        yield from cut(_inside(one, width), 2)


def certainty(cause: Cause) -> str:
    """Return how sure the line of a cause is."""
    if cause.confirmed:
        return _CONFIRMED
    return _SUSPECTED if cause.location is None or cause.location.is_value else _EFFECT


def known(cause: Cause) -> Iterator[str]:
    """Yield the sentences on the known mistakes that fit a cause; of a warning, all its results."""
    if cause.exact:
        if cause.location:
            yield f"known mistake: {sentence(cause.likely[0])}"
        yield f"({fit(cause.likely[0])})"
    if cause.exact or not cause.severity.fails_run:
        return
    nearest = [one for one in cause.likely if one.kind != "complaint"]
    if nearest and not cause.location:
        yield f"{_NEAREST} {'; '.join(map(fit, nearest))}"
    elif cause.likely and not cause.location:
        (names,) = cause.likely[0].names
        yield f"a known mistake with a similar message, {names}: {sentence(cause.likely[0])}"


_NEAREST = "no known mistake gives all results; the nearest:"
_CONFIRMED = "confirmed: with the expected value there, the failing examples pass"
_SUSPECTED = "suspected, not proved: the first value that differs; mend it and check again"
_EFFECT = "suspected, not proved: mend it and check again"


def _demand(cause: Cause, width: int, *, name: bool) -> list[str]:
    clause = clauses()[cause.head.clause]
    subject = f"{short(cause.head.backend)} " if name else ""
    if cause.head.status is Status.WARNING:
        return _inside(f"{subject}does not follow {clause.slug}", width)
    return cut(_inside(f"{subject}breaks {clause.slug}: {clause.text}", width), 2)


def short(backend: str) -> str:
    """Return the name of a backend without the file that it is in."""
    return backend.rpartition(":")[2] or backend


def _example(cause: Cause, width: int) -> Iterator[str]:
    """Yield the counterexample: sizes and shapes, the rows that differ, and by how much."""
    head, example = cause.head, cause.counterexample
    if example and example.steps:
        yield from cut(_inside(f"example: {_steps(example.steps)}", width), 2)
        yield from _rows(example, width - len(_INDENT) - 2)
    if cause.text != head.finding:
        yield from cut(_inside(head.finding, width), 2)
    if head.where:
        yield from cut(_inside(f"raised at {raised_at(head.where)}", width), 2)


def raised_at(where: str) -> str:
    """Return the last place of the end of a traceback."""
    file, colon, rest = where.rpartition("; ")[2].rpartition(":")
    return near(file) + colon + rest


def _steps(steps: Sequence[str]) -> str:
    """Return what was done, each step once, without the loading of numbers."""
    done = dict.fromkeys(one for one in steps if not one.startswith("load "))
    return "; ".join(one.removeprefix("build ") for one in done)


def cut(lines: Sequence[str], most: int) -> list[str]:
    """Return at most `most` lines; an end that is left out is marked."""
    if len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], f"{lines[most - 1].rpartition(' ')[0]} .."]


def _rows(example: Counterexample, width: int) -> Iterator[str]:
    """Yield the rows of both arrays that differ, as wide as there is room."""
    if not (example.actual and example.expected):
        return
    rows = zip(example.actual.split("\n"), example.expected.split("\n"), strict=False)
    pairs = ((_NUMBER.findall(one), _NUMBER.findall(other)) for one, other in rows)
    for actual, expected in islice(((one, other) for one, other in pairs if one != other), ROWS):
        both = list(zip(actual, expected, strict=False))
        digits = max((len(one) for two in both for one in two), default=0)
        fits = max(1, (width - 18) // (digits + 2))
        first = next((place for place, (one, other) in enumerate(both) if one != other), 0)
        start = first if len(both) > fits else 0
        for label, row in zip(("computed", "expected"), zip(*both, strict=True), strict=False):
            part = "".join(f"  {one:>{digits}}" for one in row[start : start + fits])
            more = "  .." * (start + fits < len(row))
            yield f"{_INDENT}  {label}{'  ..' * bool(start)}{part}{more}"


def _others(cause: Cause, width: int, *, name: bool) -> Iterator[str]:
    """Yield the number of the other clauses, and the names of as many as one line holds."""
    rest, mild = cause.verdicts[1:], cause.severity is Status.WARNING
    others = [one.clause for one in rest if mild or one.status is not Status.WARNING]
    if not others:
        return
    text = f"{_INDENT}also breaks {counted(len(others), 'clause')}"
    backends = dict.fromkeys(short(one.backend) for one in cause.verdicts)
    text += f" (also of {', '.join([*backends][1:])}): " if name and len(backends) > 1 else ": "
    names = list(_short(cause, others))
    while names and len(text) + len(", ".join(names)) + 4 * (len(names) < len(others)) > width:
        names.pop()
    end = ", .." if len(names) < len(others) else ""
    yield f"{text}{', '.join(names)}{end}" if names else text.rstrip(": ")


def _short(cause: Cause, others: Sequence[str]) -> Iterator[str]:
    """Yield the names of the other clauses; without the chapter where it is that of the first."""
    chapter = cause.head.clause.partition(".")[0]
    for slug in dict.fromkeys(others):
        yield slug.removeprefix(f"{chapter}.")


def folded(text: str, width: int, *, begin: str = "", indent: str = "  ") -> list[str]:
    """Return the lines of a paragraph: no word or shape is broken, later lines are indented."""
    lines = wrap(
        _TOGETHER.sub(lambda one: one[0].replace(" ", HELD), text),
        width,
        initial_indent=begin,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(HELD, " ") for line in lines]
