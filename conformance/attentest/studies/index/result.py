"""The silent-bug index as a value: each mistake with what shows it, and their sums."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from attentest.results.html_table import table
from attentest.results.optional import needed
from attentest.studies.cluster import EXTRA
from attentest.studies.index.evidence import Evidence, strongest

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "copy": {"length": 5},
    "reversal": {"length": 5},
    "addition": {"length": 2},
    "translation": {},
}
"""The tasks with their settings; the sentences to translate have unequal lengths and padding."""

COMMON: Mapping[str, Any] = {"steps": 100, "every": 50, "batch": 30, "validation": 100}

COLUMNS = {
    Evidence.STOPS: "stops",
    Evidence.TRAINING: "training",
    Evidence.VALIDATION: "held out",
    Evidence.ACCURACY: "accuracy",
    Evidence.NOTHING: "nothing",
    Evidence.UNCHANGED: "same",
}
"""The heading of the column of each kind of evidence."""

HEADINGS = ("component", "total", *COLUMNS.values())


@dataclass(frozen=True)
class Entry:
    """A mistake and what shows it: on each task, and the most visible of these."""

    slug: str
    component: str
    wrong: str
    by_task: Mapping[str, Evidence]

    @property
    def evidence(self) -> Evidence:
        """The most visible evidence on any task."""
        return strongest(tuple(self.by_task.values()))

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "fault": self.slug,
            "component": self.component,
            "wrong": self.wrong,
            "evidence": str(self.evidence),
            **{task: str(one) for task, one in self.by_task.items()},
        }


@dataclass(frozen=True)
class Index:
    """The mistakes with their evidence, out of a `population` of so many.

    `outside` is the number of catalogued mistakes that these trainings cannot contain.
    """

    entries: tuple[Entry, ...]
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    population: int
    outside: int

    @cached_property
    def counts(self) -> Mapping[Evidence, int]:
        """The number of mistakes by what shows them."""
        found = Counter(one.evidence for one in self.entries)
        return {kind: found[kind] for kind in Evidence}

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of :meth:`rows`."""
        return HEADINGS

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row of text for every component, and one for all."""
        groups: dict[str, list[Evidence]] = {}
        for one in self.entries:
            groups.setdefault(one.component, []).append(one.evidence)
        every = {**groups, "all": [one.evidence for one in self.entries]}
        return [
            (name, str(len(found)), *(str(found.count(kind)) for kind in Evidence))
            for name, found in every.items()
        ]

    def by_task(self) -> dict[str, dict[Evidence, int]]:
        """Return the number of mistakes by what shows them on each task alone."""
        return {
            task: {
                kind: sum(one.by_task[task] == kind for one in self.entries) for kind in Evidence
            }
            for task in self.tasks
        }

    def frame(self) -> Any:
        """Return a pandas data frame with a row for every mistake.

        Raises Missing where pandas is not installed.
        """
        return needed("pandas", EXTRA).DataFrame([one.as_dict() for one in self.entries])

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "tasks": list(self.tasks),
            "settings": {name: {**COMMON, **SETTINGS[name]} for name in self.tasks},
            "seeds": list(self.seeds),
            "population": self.population,
            "outside": self.outside,
            "counts": {str(kind): number for kind, number in self.counts.items()},
            "by_task": {
                task: {str(kind): number for kind, number in counts.items()}
                for task, counts in self.by_task().items()
            },
            "mistakes": [one.as_dict() for one in self.entries],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Index":
        """Read an index back from plain values."""
        tasks = tuple(plain["tasks"])
        entries = tuple(
            Entry(
                one["fault"],
                one["component"],
                one["wrong"],
                {task: Evidence(one[task]) for task in tasks},
            )
            for one in plain["mistakes"]
        )
        return cls(entries, tasks, tuple(plain["seeds"]), plain["population"], plain["outside"])

    def _repr_html_(self) -> str:
        return table(self.headings, self.rows())
