"""The matrix of a report: columns, rows by chapter, and the data behind each cell."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from attentest.results import expected_failures
from attentest.results.causes import Cause, causes, consequences, shown
from attentest.results.expected_failures import ExpectedFailure
from attentest.results.run import BackendRun, Run
from attentest.results.screen import failing_causes
from attentest.results.text import line
from attentest.results.verdict import Status, Verdict
from attentest.results.wording import likely_cause
from attentest.views import matrix
from attentest.views.html.material import Material

WORDS = {status.value: matrix.MARKS[status][0].lower() for status in Status} | {"absent": "absent"}
"""The word for each status in a cell."""

COUNTED = WORDS | {"deviation": "deviate", "violation": "violate", "warning": "warnings"}
"""The word for several verdicts of a status."""


@dataclass(frozen=True)
class Column:
    """One backend of one run; `known` holds its expected failures by clause."""

    label: str
    run: Run
    backend: BackendRun
    known: Mapping[str, str]

    @property
    def name(self) -> str:
        """The backend, in full."""
        return self.backend.target

    @property
    def counts(self) -> dict[str, int]:
        """The number of verdicts of each status that occurs."""
        return {status: number for status, number in self.backend.totals.items() if number}

    @property
    def findings(self) -> list[Verdict]:
        """The verdicts that need words."""
        return [one for one in self.backend.verdicts if one.status.needs_words]

    @cached_property
    def follows(self) -> Mapping[str, str]:
        """The clauses that fail because another one does, each with that one."""
        return consequences(self.backend.verdicts)

    @property
    def causes(self) -> Sequence[Cause]:
        """The findings, grouped by the mistake behind them."""
        return causes(self.backend.verdicts)

    @property
    def is_broken(self) -> bool:
        """Whether it does not conform, or was not loaded; warnings alone do not break it."""
        return bool(self.backend.failure or failing_causes(self.causes))

    def status(self, clause: str) -> str:
        """Return the status of `clause`, "lost" for no verdict, "" where none was asked for."""
        verdict = self.backend.by_clause.get(clause)
        if verdict is None:
            return "lost" if clause in self.run.plan.clauses else ""
        return verdict.status


def columns(material: Material) -> list[Column]:
    """Return a column for every backend of every run."""
    names = [name for run in material.runs for name in run.targets]
    return [
        _column(run, backend, matrix.label(backend.target, names), material.known)
        for run in material.runs
        for backend in run
    ]


def _column(
    run: Run, backend: BackendRun, label: str, entries: Iterable[ExpectedFailure]
) -> Column:
    pairs = ((one, expected_failures.find(entries, one)) for one in backend.verdicts)
    known = {
        one.clause: str(entry) for one, entry in pairs if entry is not None and entry.confirmed(one)
    }
    return Column(line(label, 40), run, backend, known)


def described(runs: Iterable[Run]) -> dict[str, Mapping[str, Any]]:
    """Return every planned clause as its stream describes it, chapters in one piece."""
    planned = {
        slug: run.clauses[slug] for run in runs for slug in run.clauses if slug in run.plan.clauses
    }
    order = list(dict.fromkeys(one["chapter"] for one in planned.values()))
    return dict(sorted(planned.items(), key=lambda pair: order.index(pair[1]["chapter"])))


def chapters(clauses: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the clauses of every chapter."""
    pairs = groupby(clauses.values(), lambda one: str(one["chapter"]))
    return {chapter: list(members) for chapter, members in pairs}


def data(material: Material) -> dict[str, Any]:
    """Return what the page's script needs: columns, clauses, and the verdicts of each column."""
    shown = columns(material)
    return {
        "backends": [{"name": one.name, "label": one.label} for one in shown],
        "clauses": list(described(material.runs).values()),
        "conforming": [status for status in Status if status.conforms],
        "cases": [
            {verdict.clause: dict(_cell(one, verdict)) for verdict in one.backend.verdicts}
            for one in shown
        ],
    }


def _cell(column: Column, verdict: Verdict) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a verdict; what is empty is left out to save room."""
    yield "status", verdict.status
    parts = {
        "message": verdict.message,
        "notes": verdict.notes,
        "known": column.known.get(verdict.clause, ""),
        "counterexample": verdict.counterexample and asdict(verdict.counterexample),
        "causes": [likely_cause(one) for one in shown(verdict)],
        "follows": column.follows.get(verdict.clause, ""),
        "budget": verdict.budget,
        "seconds": verdict.seconds,
    }
    yield from ((name, one) for name, one in parts.items() if one)
