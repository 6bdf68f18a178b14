"""The clauses as pytest items, and the end of a test by a verdict."""

import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attentest.interfaces.pytest.settings import reproductions_folder
from attentest.judging.bench import Bench
from attentest.judging.check import ConformanceWarning
from attentest.judging.judge import judge
from attentest.results import expected_failures, reproductions
from attentest.results.blocks import block
from attentest.results.causes import Cause, causes
from attentest.results.expected_failures import ExpectedFailure
from attentest.results.plan import select
from attentest.results.verdict import Status, Verdict
from attentest.results.wording import explanation
from attentest.targets import resolve
from attentest.targets.adapt import Reading
from attentest_spec import Backend
from attentest_spec.registry import LoadFailure

EXPECTED = pytest.StashKey[tuple[ExpectedFailure, ...]]()
"""The expected failures, stored with the configuration."""

OWN = "components"
"""The property of a report with the components that code with an inferred adapter provides."""

_STORED = ("backend", "clause", "status", "message", "where")
_NESTED = ("diagnosis", "location")
"""Fields of a verdict in a report: texts, and plain values as JSON."""

_REPRODUCED = pytest.StashKey[set[str]]()
"""The causes whose reproduction is written."""

_BENCHES = pytest.StashKey[dict[str, Bench]]()


def bench_of(config: pytest.Config, target: str) -> Bench:
    """Return the backend `target` under the settings of the run; it is loaded once.

    Raises LoadFailure for one that cannot be loaded.
    """
    known = config.stash.setdefault(_BENCHES, {})
    strict = config.getoption("--attentest-strict")
    if target not in known:
        known[target] = Bench(
            resolve.load(target, Reading(strict=strict).as_dict()),
            precision=config.getoption("--attentest-dtype"),
            device=config.getoption("--attentest-device"),
            seed=config.getoption("--attentest-seed"),
            effort=config.getoption("--attentest-effort"),
            loader=resolve.loader(target),
        )
    return known[target]


def expected(config: pytest.Config) -> tuple[ExpectedFailure, ...]:
    """Return the expected failures."""
    return config.stash.get(EXPECTED, ())


class Clauses(pytest.Collector):
    """The clauses that one backend is judged by."""

    def __init__(self, *, target: str, slugs: Iterable[str], **rest: Any) -> None:
        """Store the `target` to load, and the `slugs` of the clauses."""
        super().__init__(**rest)
        self.target = target
        self.slugs = tuple(slugs)

    def collect(self) -> Iterator["ClauseItem"]:
        """Load the backend, so that one that cannot be is one error, and yield its clauses."""
        try:
            bench = bench_of(self.config, self.target)
        except LoadFailure as failure:
            raise self.CollectError(str(failure)) from failure
        own = _own(bench.backend)
        for slug in planned(self.slugs, own):
            name = f"{slug}[{self.name}]"
            yield ClauseItem.from_parent(
                self,
                name=name,
                nodeid=f"{self.nodeid}::{name}",  # as text: so it is found again in a cache
                bench=bench,
                slug=slug,
                backend=self.name,
                own=own,
            )


class ClauseItem(pytest.Item):
    """One clause on one backend, as a test."""

    def __init__(
        self, *, bench: Bench, slug: str, backend: str, own: Iterable[str], **rest: Any
    ) -> None:
        """Store the `bench`, the `slug` of the clause and the `backend` as the user names it.

        `own` are the components that all clauses of the backend are about, none for every one.
        """
        super().__init__(**rest)
        self.bench = bench
        self.slug = slug
        self.backend = backend
        self.user_properties.append((OWN, " ".join(own)))
        self.add_marker(pytest.mark.clause(slug))

    def runtest(self) -> None:
        """Judge the clause."""
        conclude(self, judge(self.bench, self.slug), self.backend)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return the place and the heading; pytest would take dots in a name for a class."""
        return self.path, None, f"{self.slug} on {self.backend}"


def _own(backend: Backend) -> tuple[str, ...]:
    """Return the components of code whose adapter was inferred, none of a declared backend.

    Such code is judged on these alone, as `attentest check` does.
    """
    return tuple(backend.components) if getattr(backend, "understood", ()) else ()


def planned(slugs: Iterable[str], own: Iterable[str]) -> tuple[str, ...]:
    """Return those of `slugs` that are about the components `own`; all where there is none."""
    about = select(own)
    return tuple(slug for slug in slugs if slug in about)


def conclude(item: pytest.Item, verdict: Verdict, backend: str) -> None:
    """End a test by `verdict`: pass, skip, warn, fail, or fail as expected."""
    verdict = replace(verdict, backend=backend)
    item.user_properties += list(_properties(verdict))
    entry = expected_failures.find(expected(item.config), verdict)
    if entry:
        if problem := entry.problem(verdict):
            pytest.fail(problem, pytrace=False)
        pytest.xfail(str(entry))
    if verdict.status is Status.ABSENT:
        pytest.skip(verdict.message)
    if verdict.status is Status.WARNING:
        warnings.warn(_text(item.config, verdict), ConformanceWarning, stacklevel=2)
    if verdict.status.fails_run:
        pytest.fail(_text(item.config, verdict), pytrace=False)


def _text(config: pytest.Config, verdict: Verdict) -> str:
    """Return the block of the verdict's cause; with -v all that there is to say."""
    if config.getoption("verbose") > 0:
        return explanation(verdict)
    (cause,) = causes([verdict])
    return block(cause, written=_reproduction(config, cause))


def _reproduction(config: pytest.Config, cause: Cause) -> Path | None:
    """Write the reproduction of a cause, once, where the settings name a folder for it."""
    folder = reproductions_folder(config)
    known = config.stash.setdefault(_REPRODUCED, set())
    name = cause.text if cause.location or cause.exact else cause.head.clause
    if folder is None or name in known:
        return None
    known.add(name)
    return next(iter(reproductions.write([cause], folder).values()), None)


def _properties(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Yield the parts of a verdict that its report carries from the process that ran the test."""
    for name in _STORED:
        if text := str(getattr(verdict, name)):
            yield name, text
    plain = verdict.as_dict()
    for name in _NESTED:
        if verdict.status.broken and plain.get(name):
            yield name, json.dumps(plain[name])


def verdicts(reports: Iterable[pytest.TestReport]) -> list[Verdict]:
    """Return the verdicts that `reports` carry, the last one of each clause and backend."""
    stored = (dict(report.user_properties) for report in reports)
    latest = {
        (one["backend"], one["clause"]): Verdict.from_dict(
            {name: one[name] for name in _STORED if name in one}
            | {name: json.loads(str(one[name])) for name in _NESTED if name in one}
        )
        for one in stored
    }
    return list(latest.values())
