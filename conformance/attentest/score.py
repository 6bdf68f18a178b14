"""The suite's own score: which planted faults it kills, and whether it cries wolf.

Every fault is planted in its specimens and judged. It is killed when its own clause says
violation (or error, where the mistake is a loud one) on each of them. A fault that no clause
kills, a clause that kills no fault, and a clause that trips over a fault of a component that its
own does not contain are each an error of the suite.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from attentest.outcome import FAILURES
from attentest_spec.clauses import clauses

KILLING = frozenset({"violation", "warning"})


@dataclass(frozen=True)
class Trial:
    """One fault in one specimen: the status of every clause that was judged."""

    fault: str
    specimen: str
    statuses: dict[str, str]

    def tripped(self) -> list[str]:
        """Return the clauses that noticed."""
        return [slug for slug, status in self.statuses.items() if status in KILLING | FAILURES]


@dataclass(frozen=True)
class Score:
    """What came out of all trials.

    `killed` and `survived` are faults, `idle` clauses that killed none of their own, `spurious`
    pairs of a fault and a clause that should not have noticed it.
    """

    trials: list[Trial]
    killed: list[str] = field(default_factory=list)
    survived: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    spurious: list[tuple[str, str]] = field(default_factory=list)

    @property
    def perfect(self) -> bool:
        """Whether there is no error of the suite."""
        return not (self.survived or self.idle or self.spurious)

    def as_dict(self) -> dict[str, Any]:
        """Return the score as plain values, for `--json`."""
        return {
            "format": 1,
            "killed": self.killed,
            "survived": self.survived,
            "idle clauses": self.idle,
            "spurious": [list(pair) for pair in self.spurious],
            "trials": [vars(trial) for trial in self.trials],
        }


def score(
    slugs: Sequence[str],
    *,
    everything: bool = False,
    seed: int = 0,
    workers: int = 2,
    listener: Callable[[str], None] = lambda fault: None,
) -> Score:
    """Try the faults `slugs` and return the score.

    Judged are the clauses of the components that a fault can reach, or with `everything` all of
    them. The workers import torch once each.
    """
    trials: list[Trial] = []
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start) as pool:
        asked = {pool.submit(trial_of, slug, everything, seed): slug for slug in slugs}
        for answer in as_completed(asked):
            trials += answer.result()
            listener(asked[answer])
    order = {slug: number for number, slug in enumerate(slugs)}
    return scored(sorted(trials, key=lambda trial: (order[trial.fault], trial.specimen)))


def trial_of(slug: str, everything: bool = False, seed: int = 0) -> list[Trial]:
    """Plant one fault in each of its specimens and judge it."""
    from attentest.bench import Bench
    from attentest.faults import fault_of, planted
    from attentest.judge import judge

    fault = fault_of(slug)
    judged = [one.slug for one in clauses().values() if everything or fault.reaches(one.component)]
    trials = []
    for specimen in fault.specimens:
        bench = Bench(planted(fault, specimen), seed=seed, shrink=False, diagnose=False)
        statuses = {clause: judge(bench, clause).status for clause in judged}
        trials.append(Trial(slug, specimen, statuses))
    return trials


def scored(trials: Iterable[Trial]) -> Score:
    """Sum the trials up."""
    from attentest.faults import fault_of

    result = Score(list(trials))
    by_fault: dict[str, list[Trial]] = {}
    for trial in result.trials:
        by_fault.setdefault(trial.fault, []).append(trial)
    for slug, found in by_fault.items():
        fault = fault_of(slug)
        deadly = KILLING | {"error"} if fault.kind == "loud" else KILLING
        dead = all(trial.statuses.get(fault.clause) in deadly for trial in found)
        (result.killed if dead else result.survived).append(slug)
        result.spurious.extend(
            (slug, clause)
            for clause in dict.fromkeys(one for trial in found for one in trial.tripped())
            if not fault.reaches(clauses()[clause].component)
        )
    result.idle.extend(_idle(set(by_fault), set(result.killed)))
    return result


def _idle(tried: set[str], killed: set[str]) -> list[str]:
    """Return the clauses all of whose own faults were tried, and that killed none of them.

    A clause without a fault of its own is idle too, once the whole catalogue was tried.
    """
    from attentest.faults import faults

    own: dict[str, set[str]] = {slug: set() for slug in clauses()}
    for slug, fault in faults().items():
        own[fault.clause].add(slug)
    everything = tried >= set(faults())
    return [
        clause
        for clause, mine in own.items()
        if (mine or everything) and mine <= tried and not mine & killed
    ]


def _start() -> None:
    """Import what every trial needs, with one thread per worker."""
    import torch

    torch.set_num_threads(1)
