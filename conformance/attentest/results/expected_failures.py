"""The deviation file: what is known to be wrong, entry by entry, so that none of it goes stale.

TOML, with one table for each clause that is known not to hold:

    [[deviation]]
    clause = "attention.formula"
    backend = "my_model.py:backend"     # may be left out: every backend that is judged
    owner = "who puts it right"
    reason = "why it is let stand"
    link = "where it is followed up"
    message = "The output differs by 0.405"     # a piece of what is found, to the letter

An entry that says too much, or what is no longer so, is an error itself.
"""

import json
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attentest.results.verdict import FAILURES, Verdict
from attentest_spec import COMPONENTS, UnknownName
from attentest_spec.clauses import clauses
from attentest_spec.components import CHAPTERS
from attentest_spec.names import require

REQUIRED = ("clause", "owner", "reason", "link", "message")
OPTIONAL = ("backend",)

SHORTEST = 10
"""Letters of a message below which it would fit too many findings."""

_OPEN = "TODO"
_DECLARABLE = FAILURES | {"warning"}


class Misdeclared(Exception):
    """The file cannot be used; its text is one line for each thing that is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class Deviation:
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

    def known(self, verdict: Verdict) -> bool:
        """Say whether `verdict` is just what the entry declares."""
        return self.concerns(verdict) and not self.refuted(verdict)

    def refuted(self, verdict: Verdict) -> str:
        """Return why `verdict` does not bear the entry out, "" where it does."""
        what = f"The deviation file declares that {verdict.backend} breaks {verdict.clause}"
        if verdict.status == "absent":
            return f"{what}, and the entry is stale: {verdict.message}. Remove the entry."
        if verdict.status not in _DECLARABLE:
            return f"{what}, and it passes now ({verdict.status}). Remove the entry."
        if _folded(self.message) not in _folded(verdict.message):
            return (
                f"{what} with {self.message!r}, and there is another finding "
                f"({verdict.status}): {verdict.message} Look into it, and declare what is found "
                f"or remove the entry."
            )
        return ""

    def __str__(self) -> str:
        """Return the entry as it is told beside a test that is let pass."""
        return f"known: {self.reason} ({self.owner}, {self.link})"


def find(entries: Iterable[Deviation], verdict: Verdict) -> Deviation | None:
    """Return the entry that is about the clause and the backend of `verdict`.

    None for a bug of the suite, which is not for a backend to declare.
    """
    if verdict.status == "suite-bug":
        return None
    return next((entry for entry in entries if entry.concerns(verdict)), None)


def settled(entries: Iterable[Deviation], verdict: Verdict) -> tuple[Verdict, str]:
    """Return `verdict` as it counts where `entries` are declared, and why its entry is refuted."""
    entry = find(entries, verdict)
    if entry is None:
        return verdict, ""
    problem = entry.refuted(verdict)
    return verdict if problem else replace(verdict, status="deviation"), problem


def read(
    path: Path, backends: Collection[str], judged: Collection[str] = ()
) -> tuple[Deviation, ...]:
    """Read the file at `path`; `backends` may be named in it, clauses of `judged` (all if empty).

    Raises Misdeclared with everything that is wrong with it.
    """
    rows = _rows(path)
    problems = [
        f"{path.name}, entry {number}: {problem}"
        for number, row in enumerate(rows, 1)
        for problem in _problems(row, backends, judged)
    ]
    problems += [f"{path.name}: {problem}" for problem in _twins(rows)] if not problems else []
    if problems:
        raise Misdeclared("\n".join(problems))
    return tuple(Deviation(**row) for row in rows)


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as failure:
        reason = getattr(failure, "strerror", failure)
        raise Misdeclared(
            f"{path} cannot be read ({reason}). Name another file, or draft this one by "
            f"pytest --write-deviations."
        ) from failure
    except tomllib.TOMLDecodeError as failure:
        raise Misdeclared(f"{path.name} is no TOML: {failure}.") from failure
    rows = found.pop("deviation", [])
    if found or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        others = f" and holds {', '.join(found)}" if found else ""
        raise Misdeclared(f"{path.name} is made of [[deviation]] tables alone{others}.")
    return rows


def _problems(
    row: Mapping[str, Any], backends: Collection[str], judged: Collection[str]
) -> Iterator[str]:
    """Yield what is wrong with one entry; its clause and message are looked at where they are."""
    yield from (f"it lacks {name}." for name in REQUIRED if name not in row)
    for name, value in row.items():
        yield from _field(name, value)
    told = {name: value for name, value in row.items() if isinstance(value, str) and value}
    if "clause" in told:
        yield from _clause(told["clause"], judged)
    if "backend" in told:
        yield from _backend(told["backend"], backends)
    if "message" in told and len(_folded(told["message"])) < SHORTEST:
        yield (
            f"the message {told['message']!r} is over-broad: it would fit too many findings. Give "
            f"at least {SHORTEST} letters of the one that is meant."
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


def _twins(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        for other in rows[:number]:
            names = {row.get("backend", ""), other.get("backend", "")}
            if row["clause"] == other["clause"] and (len(names) == 1 or "" in names):
                yield f"{row['clause']} is declared twice for the same backend. Keep one entry."


def undeclared(entries: Iterable[Deviation], verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts that fail a run and that no entry is about."""
    known = tuple(entries)
    return [one for one in verdicts if one.status in FAILURES and find(known, one) is None]


def draft(verdicts: Iterable[Verdict]) -> str:
    """Return a deviation file for those of `verdicts` that fail a run, to be filled in."""
    return "\n".join(_drafted(one) for one in verdicts if one.status in FAILURES)


def _drafted(verdict: Verdict) -> str:
    message = _folded(verdict.message)
    if verdict.status == "error":  # where it was raised changes with every edit
        message = message.rpartition(" (")[0] or message
    row = {
        "clause": verdict.clause,
        "backend": verdict.backend,
        "owner": _OPEN,
        "reason": _OPEN,
        "link": _OPEN,
        "message": message,
    }
    lines = (f"{name} = {_quoted(value)}" for name, value in row.items())
    demand = f"# {_folded(clauses()[verdict.clause].text)}"
    return "\n".join([demand, "[[deviation]]", *lines, ""])


def _quoted(text: str) -> str:
    """Return `text` as a basic string of TOML, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _folded(text: str) -> str:
    return " ".join(text.split())
