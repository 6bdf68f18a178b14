"""Changes from one run to the next, verdict by verdict."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from attentest.results.html_table import table
from attentest.results.run import Run
from attentest.results.verdict import Status, Verdict

KINDS: Mapping[str, str] = {
    "newly failing": "conformed, and fails now",
    "lost": "was asked for again, and got no verdict",
    "no longer judged": "is absent now",
    "fixed": "failed, and conforms now",
    "newly judged": "was absent",
    "changed": "has another verdict, and conforms or fails as before",
    "removed": "was not asked for again",
    "added": "was not there before",
}
"""The kinds of change, the most serious first, and what each means."""


@dataclass(frozen=True)
class Change:
    """A verdict that is another one now; "" stands for no verdict.

    `regression` means that it conformed, and that the new run was asked and does not show that.
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
    """All that changed between two runs, backend by backend and the most serious first.

    `unchanged` counts the verdicts that are the same, `settings` holds those that differ, as
    (name, before, now), `failures` the backends that the new run could not load, and why.
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
    if not set(old.targets) & set(new.targets):
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
        {one.target: one.failure for one in new if one.failure},
    )


def _changes(old: Run, new: Run) -> Iterator[Change]:
    """Yield every change, in the order of backends and clauses."""
    for target in dict.fromkeys([*old.targets, *new.targets]):
        earlier, later = _verdicts(old, target), _verdicts(new, target)
        asked = set(new.plan.clauses) if target in new.targets else set()
        for clause in dict.fromkeys([*old.plan.clauses, *new.plan.clauses]):
            change = _change(earlier.get(clause), later.get(clause), clause in asked)
            if change:
                yield change


def _verdicts(run: Run, target: str) -> dict[str, Verdict]:
    return run[target].by_clause if target in run.targets else {}


def _change(before: Verdict | None, now: Verdict | None, asked: bool) -> Change | None:
    """Return the change from one verdict to another, None where there is none."""
    either = now or before
    kind = _kind(before.status if before else None, now.status if now else None, asked)
    if not kind or either is None:
        return None
    conforms = now is not None and now.status.conforms
    worse = before is not None and before.status.conforms and not conforms and kind != "removed"
    return Change(
        kind,
        either.backend,
        either.clause,
        before.status.value if before else "",
        now.status.value if now else "",
        now.message if now else "",
        worse,
    )


def _kind(before: Status | None, now: Status | None, asked: bool) -> str:
    """Return the kind of the change from one status to another, "" where there is none."""
    if before is now:
        return ""
    if before is None:
        return "added"
    if now is None:
        return "lost" if asked else "removed"
    if not now.judged:
        return "no longer judged"
    if not before.judged:
        return "newly judged"
    if before.conforms == now.conforms:
        return "changed"
    return "newly failing" if before.conforms else "fixed"


def _unchanged(old: Run, new: Run, found: list[Change]) -> dict[str, int]:
    """Return how many verdicts of each backend are the same in both."""
    moved = Counter(one.backend for one in found if one.before and one.now)
    return {
        name: len(old[name].by_clause.keys() & new[name].by_clause.keys()) - moved[name]
        for name in old.targets
        if name in new.targets
    }


def _settings(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys([*old, *new]):
        before, now = old.get(name, "-"), new.get(name, "-")
        if before != now:
            yield name, before, now
