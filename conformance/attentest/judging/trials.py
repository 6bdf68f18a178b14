"""Trials of the suite itself: one backend, faulty or correct, judged with some seeds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from attentest.results.verdict import LikelyCause, Status
from attentest_spec import COMPONENTS
from attentest_spec.clauses import clauses
from attentest_spec.names import require

if TYPE_CHECKING:
    from attentest.faults import Fault


@dataclass(frozen=True)
class Trial:
    """One backend judged with one seed: the status of every clause that was judged.

    `subject` is the slug of a fault and `specimen` the reference model it was injected into, or
    `subject` is unusual but correct code and `specimen` is "". `likely_causes` come from the
    diagnosis of the fault's own clause, None where none was asked for.
    """

    subject: str
    specimen: str
    seed: int
    statuses: Mapping[str, Status]
    likely_causes: tuple[LikelyCause, ...] | None = None

    def broken(self) -> list[str]:
        """Return the clauses that do not hold."""
        return [slug for slug, status in self.statuses.items() if status.broken]

    def as_dict(self) -> dict[str, Any]:
        """Return the trial as plain values."""
        causes = None if self.likely_causes is None else [asdict(one) for one in self.likely_causes]
        return {
            "subject": self.subject,
            "specimen": self.specimen,
            "seed": self.seed,
            "statuses": dict(self.statuses),
            "likenesses": causes,
        }


@dataclass(frozen=True)
class Task:
    """One fault, or with `unusual` one piece of unusual but correct code, for every seed.

    The fault's own clause is judged as in a run, in every reference model and with every seed; with
    the first seed and in the first model the other clauses in reach are judged by one example
    each. `alone` leaves the others out, `everything` judges every clause as in a run, with every
    seed; `diagnose` names the mistake by the fault's own clause.
    """

    subject: str
    seeds: tuple[int, ...]
    unusual: bool = False
    alone: bool = False
    everything: bool = False
    diagnose: bool = False

    def trials(self) -> list[Trial]:
        """Judge, and return the trials."""
        return list(self._correct() if self.unusual else self._injected())

    def _injected(self) -> Iterator[Trial]:
        from attentest.faults import fault_of

        fault = fault_of(self.subject)
        for specimen in fault.models:
            for seed in self.seeds:
                yield self._trial(fault, specimen, seed)

    def _trial(self, fault: "Fault", specimen: str, seed: int) -> Trial:
        from attentest.faults import inject
        from attentest.judging.bench import Bench
        from attentest.judging.judge import judge

        bench = Bench.for_status(inject(fault, specimen), seed=seed)
        others = bench if self.everything else replace(bench, effort=0.0)
        statuses = {
            slug: judge(others, slug).status
            for slug in self._others(fault, specimen, seed)
            if slug != fault.clause
        }
        named = replace(bench, shrink=True, diagnose=True, shown=True) if self.diagnose else bench
        own = judge(named, fault.clause)
        statuses[fault.clause] = own.status
        return Trial(fault.slug, specimen, seed, statuses, own.diagnosis if self.diagnose else None)

    def _others(self, fault: "Fault", specimen: str, seed: int) -> Iterable[str]:
        """Return the clauses that are judged besides the fault's own."""
        if self.everything:
            return clauses()
        if self.alone or (specimen, seed) != (fault.models[0], self.seeds[0]):
            return ()
        return [
            one.slug
            for one in clauses().values()
            if fault.reaches(one.component) and not one.anywhere
        ]

    def _correct(self) -> Iterator[Trial]:
        from attentest.faults.unusual import UNUSUAL
        from attentest.judging.bench import Bench
        from attentest.judging.judge import judge

        backend = UNUSUAL[self.subject]
        provided = [one.slug for one in clauses().values() if one.component in backend.components]
        for seed in self.seeds:
            bench = Bench.for_status(backend, seed=seed)
            statuses = {slug: judge(bench, slug).status for slug in provided}
            yield Trial(self.subject, "", seed, statuses)


def tasks(
    slugs: Iterable[str],
    components: Iterable[str],
    seeds: Sequence[int] = (0,),
    **how: bool,
) -> list[Task]:
    """Return the faults `slugs` of `components`, and unusual but correct code where none is named.

    Empty means all; `how` are the switches of a :class:`Task`. Raises UnknownName with the nearest
    names for one that is none.
    """
    from attentest.faults import faults
    from attentest.faults.unusual import UNUSUAL

    named = [require("fault", slug, faults()) for slug in slugs]
    wanted = {require("component", name, COMPONENTS) for name in components}
    chosen = [
        slug
        for slug, fault in faults().items()
        if (not named or slug in named) and (not wanted or set(fault.changes) & wanted)
    ]
    correct = [
        name
        for name, backend in UNUSUAL.items()
        if not named and (not wanted or set(backend.components) & wanted)
    ]
    return [
        *(Task(name, tuple(seeds), unusual=True) for name in correct),
        *(Task(slug, tuple(seeds), **how) for slug in chosen),
    ]
