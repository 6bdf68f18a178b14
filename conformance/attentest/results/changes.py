"""What changed from one run to the next, verdict by verdict."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from attentest.results.html_table import table
from attentest.results.stored_runs import Run
from attentest.results.verdict import FAILURES

CONFORMS = frozenset({"pass", "deviation", "warning"})
"""The statuses of a clause that a backend conforms to."""

FAILS = FAILURES | {"suite-bug"}
"""The statuses that make a run exit with 1."""

KINDS: Mapping[str, str] = {
    "newly failing": "conformed, and fails now",
    "lost": "was asked for again, and got no verdict",
    "no longer judged": "is absent now",
    "fixed": "failed, and conforms now",
    "newly judged": "was absent",
    "changed": "has another verdict of the same standing",
    "removed": "was not asked for again",
    "added": "was not there before",
}
"""The kinds of change, the gravest first, and what each means."""


@dataclass(frozen=True)
class Change:
    """A verdict that is another one now; "" stands for no verdict.

    `regression` says that it conformed, and that the new run was asked and cannot say so.
    """

    kind: str
    backend: str
    clause: str
    before: str
    now: str
    message: str
    regression: bool


@dataclass(frozen=True)
class Changes:
    """All that changed between two runs, backend by backend and the gravest first.

    `unchanged` counts the verdicts that are the same, `settings` tells under which other ones the
    new run was made, as (name, before, now), `failures` which backends it could not load, and why.
    """

    old: str
    new: str
    changes: tuple[Change, ...]
    unchanged: Mapping[str, int]
    settings: tuple[tuple[str, str, str], ...]
    failures: Mapping[str, str]

    @property
    def regressions(self) -> tuple[Change, ...]:
        """The changes for the worse."""
        return tuple(one for one in self.changes if one.regression)

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat record for each change."""
        return [asdict(one) for one in self.changes]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "regressions": len(self.regressions)}

    def _repr_html_(self) -> str:
        headings = ("kind", "backend", "clause", "before", "now")
        return table(headings, [[row[name] for name in headings] for row in self.rows()])


class Unrelated(Exception):
    """Two runs that have no backend in common."""


def changes(old: Run, new: Run) -> Changes:
    """Return what changed from the run `old` to the run `new`.

    Raises Unrelated where no backend is in both of them.
    """
    if not set(old.backends) & set(new.backends):
        raise Unrelated(
            f"{old.name} and {new.name} have no backend in common, so nothing can be compared. To "
            f"show them in one page, ask for them --side-by-side."
        )
    found = list(_changes(old, new))
    order = list(KINDS)
    return Changes(
        old.name,
        new.name,
        tuple(sorted(found, key=lambda one: (not one.regression, order.index(one.kind)))),
        _unchanged(old, new, found),
        tuple(_settings(old.settings, new.settings)),
        {name: facts["failure"] for name, facts in new.backends.items() if facts["failure"]},
    )


def _changes(old: Run, new: Run) -> Iterator[Change]:
    """Yield every change, in the order of backends and clauses."""
    for backend in dict.fromkeys([*old.backends, *new.backends]):
        earlier, later = old.cases.get(backend, {}), new.cases.get(backend, {})
        asked = set(new.plan) if backend in new.backends else set()
        for clause in dict.fromkeys([*old.plan, *new.plan]):
            before = earlier[clause].status if clause in earlier else ""
            now = later[clause].status if clause in later else ""
            kind = _kind(before, now, clause in asked)
            if kind:
                message = later[clause].message if clause in later else ""
                worse = before in CONFORMS and now not in CONFORMS and kind != "removed"
                yield Change(kind, backend, clause, before, now, message, worse)


def _kind(before: str, now: str, asked: bool) -> str:
    """Return the kind of the change from one status to another, "" where there is none."""
    if before == now:
        return ""
    match before, now:
        case "", _:
            return "added"
        case _, "":
            return "lost" if asked else "removed"
        case _, "absent":
            return "no longer judged"
        case "absent", _:
            return "newly judged"
    if (before in CONFORMS) == (now in CONFORMS):
        return "changed"
    return "newly failing" if before in CONFORMS else "fixed"


def _unchanged(old: Run, new: Run, found: list[Change]) -> dict[str, int]:
    """Return how many verdicts of each backend are the same in both."""
    moved = Counter(one.backend for one in found if one.before and one.now)
    return {
        name: len(old.cases[name].keys() & new.cases[name].keys()) - moved[name]
        for name in old.backends
        if name in new.backends
    }


def _settings(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys([*old, *new]):
        before, now = old.get(name, "-"), new.get(name, "-")
        if before != now:
            yield name, before, now
