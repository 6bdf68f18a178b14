"""The matrix of a report: columns, rows by chapter, and what a click on a cell shows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from attentest.results import expected_failures
from attentest.results.expected_failures import Deviation
from attentest.results.plan import Plan
from attentest.results.run import Judged
from attentest.results.stored_runs import Run
from attentest.results.text import line
from attentest.results.verdict import FAILURES, STATUSES, Verdict
from attentest.results.wording import likeness, mistakes
from attentest.views import matrix
from attentest.views.html.material import Material

WORDS = {status: matrix.MARKS[status][0].lower() for status in STATUSES} | {"absent": "absent"}
"""How each status is called in a cell."""

COUNTED = WORDS | {"deviation": "deviate", "violation": "violate", "warning": "warnings"}
"""How several verdicts of a status are called."""

NEEDS_WORDS = FAILURES | {"warning", "suite-bug"}


@dataclass(frozen=True)
class Column:
    """One backend of one run, what is known of it declared in `known`, by clause."""

    label: str
    run: Run
    judged: Judged
    cases: Mapping[str, Verdict]
    known: Mapping[str, str]

    @property
    def name(self) -> str:
        """The backend, in full."""
        return self.judged.target

    @property
    def score(self) -> tuple[int, int]:
        """How many clauses it conforms to, and how many were judged."""
        return matrix.scored(self.judged)

    @property
    def summary(self) -> str:
        """One sentence with every denominator."""
        return matrix.summary(self.judged, Plan(self.run.plan))

    @property
    def counts(self) -> dict[str, int]:
        """The number of verdicts of each status that there is."""
        counted = Counter(one.status for one in self.judged.verdicts)
        return {status: counted[status] for status in STATUSES if counted[status]}

    @property
    def stories(self) -> list[Verdict]:
        """The verdicts that need words."""
        return [one for one in self.judged.verdicts if one.status in NEEDS_WORDS]

    @property
    def likely(self) -> list[str]:
        """What most of its failing clauses look like."""
        return mistakes(self.judged.verdicts)

    def status(self, clause: str) -> str:
        """Return the status of `clause`, "lost" for no verdict, "" where none was asked for."""
        found = self.cases.get(clause)
        if found is None:
            return "lost" if clause in self.run.plan else ""
        return found.status


def columns(material: Material) -> list[Column]:
    """Return a column for every backend of every run."""
    names = [name for run in material.runs for name in run.backends]
    return [
        _column(run, name, matrix.label(name, names), material.known)
        for run in material.runs
        for name in run.backends
    ]


def _column(run: Run, name: str, label: str, entries: Iterable[Deviation]) -> Column:
    facts, cases = run.backends[name], run.cases[name]
    judged = Judged(
        name, facts, list(cases.values()), run.measured.get(name, {}), str(facts["failure"])
    )
    found = ((one, expected_failures.find(entries, one)) for one in judged.verdicts)
    known = {
        one.clause: str(entry) for one, entry in found if entry is not None and entry.known(one)
    }
    return Column(line(label, 40), run, judged, cases, known)


def described(runs: Iterable[Run]) -> dict[str, Mapping[str, Any]]:
    """Return every planned clause as its stream describes it, chapters in one piece."""
    found = {
        clause["slug"]: clause
        for run in runs
        for clause in run.header["clauses"]
        if clause["slug"] in run.plan
    }
    chapters = list(dict.fromkeys(one["chapter"] for one in found.values()))
    return dict(sorted(found.items(), key=lambda pair: chapters.index(pair[1]["chapter"])))


def chapters(found: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the clauses of every chapter."""
    pairs = groupby(found.values(), lambda one: str(one["chapter"]))
    return {chapter: list(members) for chapter, members in pairs}


def data(material: Material) -> dict[str, Any]:
    """Return what the page's script needs: columns, clauses, and the verdicts of each column."""
    told = columns(material)
    return {
        "backends": [{"name": one.name, "label": one.label} for one in told],
        "clauses": list(described(material.runs).values()),
        "cases": [{slug: dict(_case(one, slug)) for slug in one.cases} for one in told],
    }


def _case(column: Column, slug: str) -> Iterator[tuple[str, Any]]:
    """Yield what there is to say of a verdict; what is empty is left out to save room."""
    verdict = column.cases[slug]
    yield "status", verdict.status
    told = {
        "message": verdict.message,
        "notes": verdict.notes,
        "known": column.known.get(slug, ""),
        "witness": verdict.witness and asdict(verdict.witness),
        "looks": [likeness(one) for one in verdict.diagnosis],
        "budget": verdict.budget,
        "seconds": verdict.seconds,
    }
    yield from ((name, one) for name, one in told.items() if one)
