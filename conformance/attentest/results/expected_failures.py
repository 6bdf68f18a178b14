"""Expected failures: a file with the clauses that are known not to hold, as pytest's strict xfail.

TOML, with one table for each clause:

    [[expected_failure]]
    clause = "attention.formula"
    backend = "my_model.py:backend"     # optional: every backend that is judged if left out
    owner = "who is going to correct it"
    reason = "why it is accepted for now"
    link = "where it is tracked"
    message = "The output differs by 0.405"     # a part of the finding, verbatim

A table may be called [[deviation]] as well. An entry that is too broad, or no longer true, is an
error itself: the list cannot become stale.
"""

import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attentest.results.run import Run
from attentest.results.verdict import Status, Verdict
from attentest_spec import COMPONENTS, UnknownName
from attentest_spec.clauses import clauses
from attentest_spec.components import CHAPTERS
from attentest_spec.names import require

REQUIRED = ("clause", "owner", "reason", "link", "message")
OPTIONAL = ("backend",)

SHORTEST = 10
"""Letters that a message has at least: a shorter one would match too many findings."""

TABLES = ("expected_failure", "deviation")
"""The names that a table may have: the one that is drafted, and an older one."""

_OPEN = "TODO"


class UnusableFile(Exception):
    """The file cannot be used; its text is one line for each problem in it."""


@dataclass(frozen=True, kw_only=True)
class ExpectedFailure:
    """One clause that is known not to hold; an empty `backend` means every one that is judged."""

    clause: str
    owner: str
    reason: str
    link: str
    message: str
    backend: str = ""

    def concerns(self, verdict: Verdict) -> bool:
        """Say whether the entry is about the clause and the backend of `verdict`."""
        return self.clause == verdict.clause and self.backend in ("", verdict.backend)

    def confirmed(self, verdict: Verdict) -> bool:
        """Say whether `verdict` is the failure that the entry expects."""
        return self.concerns(verdict) and not self.problem(verdict)

    def problem(self, verdict: Verdict) -> str:
        """Return how `verdict` differs from the entry, "" where it is the expected failure."""
        what = f"The expected failures say that {verdict.backend} breaks {verdict.clause}"
        if not verdict.status.judged:
            return f"{what}, and the entry is stale: {verdict.message}. Remove the entry."
        if not verdict.status.broken:
            return f"{what}, and it passes now ({verdict.status}). Remove the entry."
        if _one_line(self.message) not in _one_line(verdict.message):
            return (
                f"{what} with {self.message!r}, and there is another finding "
                f"({verdict.status}): {verdict.message} Look into it, and write down this finding "
                f"or remove the entry."
            )
        return ""

    def __str__(self) -> str:
        """Return the entry as it is shown with a test that is expected to fail."""
        return f"known: {self.reason} ({self.owner}, {self.link})"


def find(entries: Iterable[ExpectedFailure], verdict: Verdict) -> ExpectedFailure | None:
    """Return the entry that is about the clause and the backend of `verdict`.

    None for a bug of the suite: no entry can be about that.
    """
    if verdict.status is Status.SUITE_BUG:
        return None
    return next((entry for entry in entries if entry.concerns(verdict)), None)


def applied(entries: Iterable[ExpectedFailure], run: Run) -> tuple[Run, list[str]]:
    """Return `run` with expected failures as deviations, and the problems of the entries."""
    entries, problems, backends = tuple(entries), [], []
    for backend in run:
        verdicts = []
        for verdict in backend.verdicts:
            entry = find(entries, verdict)
            problem = entry.problem(verdict) if entry else ""
            problems += [problem] if problem else []
            expected = entry is not None and not problem
            verdicts.append(replace(verdict, status=Status.DEVIATION) if expected else verdict)
        backends.append(replace(backend, verdicts=verdicts))
    return replace(run, backends=tuple(backends)), problems


def read(
    path: Path, backends: Collection[str], judged: Collection[str] = ()
) -> tuple[ExpectedFailure, ...]:
    """Read the file at `path`; `backends` may be named in it, clauses of `judged` (all if empty).

    Raises UnusableFile with all problems of the file.
    """
    rows = _rows(path)
    problems = [
        f"{path.name}, entry {number}: {problem}"
        for number, row in enumerate(rows, 1)
        for problem in _problems(row, backends, judged)
    ]
    problems += [f"{path.name}: {problem}" for problem in _duplicates(rows)] if not problems else []
    if problems:
        raise UnusableFile("\n".join(problems))
    return tuple(ExpectedFailure(**row) for row in rows)


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as failure:
        reason = getattr(failure, "strerror", failure)
        raise UnusableFile(
            f"{path} cannot be read ({reason}). Name another file, or draft this one by "
            f"pytest --write-deviations."
        ) from failure
    except tomllib.TOMLDecodeError as failure:
        raise UnusableFile(f"{path.name} is no TOML: {failure}.") from failure
    tables = [found.pop(name, []) for name in TABLES]
    rows = [row for several in tables if isinstance(several, list) for row in several]
    lists = all(isinstance(several, list) for several in tables)
    if found or not lists or not all(isinstance(row, dict) for row in rows):
        others = f", and this one holds {', '.join(found)}" if found else ""
        raise UnusableFile(f"{path.name} may hold [[{TABLES[0]}]] tables alone{others}.")
    return rows


def _problems(
    row: Mapping[str, Any], backends: Collection[str], judged: Collection[str]
) -> Iterator[str]:
    """Yield the problems of one entry."""
    yield from (f"it lacks {name}." for name in REQUIRED if name not in row)
    for name, value in row.items():
        yield from _field(name, value)
    texts = {name: value for name, value in row.items() if isinstance(value, str) and value}
    if "clause" in texts:
        yield from _clause(texts["clause"], judged)
    if "backend" in texts:
        yield from _backend(texts["backend"], backends)
    if "message" in texts and len(_one_line(texts["message"])) < SHORTEST:
        yield (
            f"the message {texts['message']!r} is over-broad: it would match too many findings. "
            f"Give at least {SHORTEST} letters of the one that is meant."
        )


def _field(name: str, value: object) -> Iterator[str]:
    if name not in REQUIRED + OPTIONAL:
        yield str(UnknownName("field", name, REQUIRED + OPTIONAL))
    elif not isinstance(value, str):
        yield f"{name} is no text but {value!r}."
    elif not value.strip():
        yield f"{name} is empty."
    elif value.strip().upper().startswith(_OPEN):
        yield f"{name} is still {_OPEN}. Fill it in."


def _clause(slug: str, judged: Collection[str]) -> Iterator[str]:
    if _wild(slug) or slug in CHAPTERS or slug in COMPONENTS:
        yield f"the clause {slug!r} is over-broad. Write one entry for each clause that is meant."
        return
    try:
        require("clause", slug, clauses())
    except UnknownName as unknown:
        yield str(unknown)
        return
    if judged and slug not in judged:
        yield f"the clause {slug} is not among those that are judged here. Remove the entry."


def _backend(name: str, backends: Collection[str]) -> Iterator[str]:
    if _wild(name):
        yield f"the backend {name!r} is over-broad. Leave it out, or name one."
    elif name not in backends:
        yield str(UnknownName("backend", name, backends))


def _wild(name: str) -> bool:
    return any(letter in name for letter in "*?")


def _duplicates(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        for other in rows[:number]:
            names = {row.get("backend", ""), other.get("backend", "")}
            if row["clause"] == other["clause"] and (len(names) == 1 or "" in names):
                yield f"{row['clause']} is declared twice for the same backend. Keep one entry."


def unexpected(entries: Iterable[ExpectedFailure], verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts that fail a run and that no entry is about."""
    known = tuple(entries)
    return [one for one in verdicts if one.status.fails and find(known, one) is None]


def draft(verdicts: Iterable[Verdict]) -> str:
    """Return a file with an entry for each of `verdicts` that fails a run, to be filled in."""
    return "\n".join(_entry(one) for one in verdicts if one.status.fails)


def _entry(verdict: Verdict) -> str:
    row = {
        "clause": verdict.clause,
        "backend": verdict.backend,
        "owner": _OPEN,
        "reason": _OPEN,
        "link": _OPEN,
        "message": _one_line(verdict.finding),  # without the place, which changes with every edit
    }
    lines = (f"{name} = {_quoted(value)}" for name, value in row.items())
    demand = f"# {_one_line(clauses()[verdict.clause].text)}"
    return "\n".join([demand, f"[[{TABLES[0]}]]", *lines, ""])


def _quoted(text: str) -> str:
    """Return `text` as a basic string of TOML, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _one_line(text: str) -> str:
    return " ".join(text.split())
