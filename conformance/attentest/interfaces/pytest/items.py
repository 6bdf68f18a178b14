"""The clauses as tests: what pytest collects, and how a verdict ends a test."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from attentest.judging.bench import Bench
from attentest.judging.check import ConformanceWarning
from attentest.judging.judge import judge
from attentest.results import expected_failures
from attentest.results.expected_failures import Deviation
from attentest.results.verdict import FAILURES, Verdict
from attentest.results.wording import told
from attentest.targets import resolve
from attentest_spec.registry import LoadFailure

DECLARED = pytest.StashKey[tuple[Deviation, ...]]()
"""What the deviation file declares, kept with the configuration."""

_KEPT = ("backend", "clause", "status", "message")
_BENCHES = pytest.StashKey[dict[str, Bench]]()


def bench_of(config: pytest.Config, target: str) -> Bench:
    """Return the backend that `target` leads to, under the settings of the run; loaded once.

    Raises LoadFailure for one that cannot be loaded.
    """
    known = config.stash.setdefault(_BENCHES, {})
    if target not in known:
        known[target] = Bench(
            resolve.load(target),
            precision=config.getoption("--attentest-dtype"),
            device=config.getoption("--attentest-device"),
            seed=config.getoption("--attentest-seed"),
            loader=resolve.loader(target),
        )
    return known[target]


def declared(config: pytest.Config) -> tuple[Deviation, ...]:
    """Return what the deviation file declares."""
    return config.stash.get(DECLARED, ())


class Clauses(pytest.Collector):
    """The clauses that one backend is judged by."""

    def __init__(self, *, target: str, slugs: Iterable[str], **rest: Any) -> None:
        """Keep the `target` to load, and the `slugs` of the clauses."""
        super().__init__(**rest)
        self.target = target
        self.slugs = tuple(slugs)

    def collect(self) -> Iterator["ClauseItem"]:
        """Load the backend, so that one that cannot be is one error, and yield its clauses."""
        try:
            bench = bench_of(self.config, self.target)
        except LoadFailure as failure:
            raise self.CollectError(str(failure)) from failure
        for slug in self.slugs:
            name = f"{slug}[{self.name}]"
            yield ClauseItem.from_parent(
                self,
                name=name,
                nodeid=f"{self.nodeid}::{name}",  # as text: so it is found again in a cache
                bench=bench,
                slug=slug,
                backend=self.name,
            )


class ClauseItem(pytest.Item):
    """One clause on one backend, as a test."""

    def __init__(self, *, bench: Bench, slug: str, backend: str, **rest: Any) -> None:
        """Keep the `bench`, the `slug` of the clause and the `backend` as the user names it."""
        super().__init__(**rest)
        self.bench = bench
        self.slug = slug
        self.backend = backend
        self.add_marker(pytest.mark.clause(slug))

    def runtest(self) -> None:
        """Judge the clause."""
        conclude(self, judge(self.bench, self.slug), self.backend)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return the place and the heading; pytest would take dots in a name for a class."""
        return self.path, None, f"{self.slug} on {self.backend}"


def conclude(item: pytest.Item, verdict: Verdict, backend: str) -> None:
    """End a test by `verdict` in the words of pytest, as the deviation file has it."""
    verdict = replace(verdict, backend=backend)
    _keep(item, verdict)
    entry = expected_failures.find(declared(item.config), verdict)
    if entry:
        if problem := entry.refuted(verdict):
            pytest.fail(problem, pytrace=False)
        pytest.xfail(str(entry))
    if verdict.status == "absent":
        pytest.skip(verdict.message)
    if verdict.status == "warning":
        warnings.warn(told(verdict), ConformanceWarning, stacklevel=2)
    if verdict.status in FAILURES or verdict.status == "suite-bug":
        pytest.fail(told(verdict), pytrace=False)


def _keep(item: pytest.Item, verdict: Verdict) -> None:
    """Write the verdict into the report, which travels from a process that runs tests."""
    item.user_properties += [(name, getattr(verdict, name)) for name in _KEPT]


def verdicts(reports: Iterable[pytest.TestReport]) -> list[Verdict]:
    """Return the verdicts that are kept in `reports`, the last one of each clause and backend."""
    kept = (dict(report.user_properties) for report in reports)
    found = {
        (one["backend"], one["clause"]): Verdict.from_dict({name: one[name] for name in _KEPT})
        for one in kept
    }
    return list(found.values())
