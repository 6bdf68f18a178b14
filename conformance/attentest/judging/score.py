"""The suite's own score: the injected faults that it detects, and its false alarms.

Every fault is injected into its reference models and judged. It is detected when its own clause is
a violation (or an error, where the mistake is a loud one) on each of them, with every seed. A fault
that its clause does not detect, a clause that detects no fault, a clause that fails by a fault of a
component that its own does not contain, and a clause that unusual but correct code does not conform
to are each an error of the suite.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from attentest.harness.process_state import collect_rarely
from attentest.judging.registry import checks
from attentest.judging.trials import Task, Trial
from attentest.results.verdict import Status
from attentest.studies.cluster import Lost, cluster
from attentest_spec.clauses import clauses

if TYPE_CHECKING:
    from attentest.faults import Fault


@dataclass(frozen=True)
class Named:
    """Counts of diagnoses that name the injected fault.

    `first` counts those named first, `equal` those where another cause is named first that gave
    the same results in all examples, `later` those among the others named.
    """

    first: int
    equal: int
    later: int
    total: int

    @classmethod
    def of(cls, trials: Iterable[Trial]) -> "Named":
        """Count over `trials`."""
        places = [_place(trial) for trial in trials]
        first, equal, later = (places.count(place) for place in ("first", "equal", "later"))
        return cls(first, equal, later, len(places))


def _place(trial: Trial) -> str:
    """Return where the diagnosis names the fault of `trial`."""
    found = {one.names: one for one in trial.likely_causes or ()}
    mine, best = found.get((trial.subject,)), next(iter(found.values()), None)
    if mine is None or best is None:
        return "not"
    if mine is best:
        return "first"
    alike = best.kind != "complaint" and len(best.names) == 1 and best.missed == mine.missed == 0
    return "equal" if alike else "later"


@dataclass(frozen=True)
class Score:
    """The outcome of all trials.

    `detected` and `survived` are faults, `idle` clauses that detected none of their own, `spurious`
    pairs of a fault and a clause that should not fail by it, `alarms` triples of unusual but
    correct code, a clause that it does not conform to, and the status.
    """

    trials: list[Trial]
    correct: list[Trial] = field(default_factory=list)
    detected: list[str] = field(default_factory=list)
    survived: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    spurious: list[tuple[str, str]] = field(default_factory=list)
    alarms: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def perfect(self) -> bool:
        """Whether there is no error of the suite."""
        return not (self.survived or self.idle or self.spurious or self.alarms)

    def named(self, kinds: Collection[str]) -> "Named | None":
        """Return how the faults of `kinds` were named; None where no diagnosis was asked for."""
        from attentest.faults import fault_of

        diagnosed = [
            trial
            for trial in self.trials
            if trial.likely_causes is not None and fault_of(trial.subject).kind in kinds
        ]
        return Named.of(diagnosed) if diagnosed else None

    @property
    def seeds(self) -> list[int]:
        """The seeds of all trials."""
        return sorted({trial.seed for trial in [*self.trials, *self.correct]})

    def as_dict(self) -> dict[str, Any]:
        """Return the score as plain values, for `--json`."""
        return {
            "format": 1,
            "seeds": self.seeds,
            "killed": self.detected,
            "survived": self.survived,
            "idle clauses": self.idle,
            "spurious": [list(pair) for pair in self.spurious],
            "zoo": sorted({trial.subject for trial in self.correct}),
            "false alarms": [list(alarm) for alarm in self.alarms],
            "trials": [trial.as_dict() for trial in self.trials],
        }


def score(
    tasks: Sequence[Task],
    *,
    workers: int = 0,
    scheduler: str = "",
    listener: Callable[[Task], None] = lambda task: None,
) -> Score:
    """Carry out `tasks` with `workers` (as many as there are cores) and return the score.

    With the address of a `scheduler` they are carried out on its Dask cluster. Raises
    :class:`NoScheduler` where none answers, and :class:`LostTask` where no worker there could carry
    a task out.
    """
    trials: list[Trial] = []
    ended = _scheduled(tasks, scheduler) if scheduler else _in_processes(tasks, workers)
    for task, found in ended:
        trials += found
        listener(task)
    order = {task.subject: number for number, task in enumerate(tasks)}
    trials.sort(key=lambda trial: (order[trial.subject], trial.specimen, trial.seed))
    return scored(trials)


Ended = Iterator[tuple[Task, list[Trial]]]


class LostTask(Exception):
    """A task that no worker of a cluster could carry out; its text is one sentence."""


def _in_processes(tasks: Sequence[Task], workers: int) -> Ended:
    with ProcessPoolExecutor(
        workers or os.cpu_count() or 1,
        mp_context=get_context("spawn"),
        initializer=_start,
        initargs=(os.getpid(),),
    ) as pool:
        asked = {pool.submit(task.trials): task for task in tasks}
        for answer in as_completed(asked):
            yield asked[answer], answer.result()


def _scheduled(tasks: Sequence[Task], scheduler: str) -> Ended:
    with cluster(0, scheduler) as machines:
        for task, found in machines.each(_carried_out, ((task, (task,)) for task in tasks)):
            if isinstance(found, Lost):
                raise LostTask(f"The trials of {task.subject} have no result: {found.reason}.")
            yield task, found


def _carried_out(task: Task) -> list[Trial]:
    _prepare()
    return task.trials()


def scored(trials: Iterable[Trial]) -> Score:
    """Sum the trials up."""
    from attentest.faults import fault_of

    trials = list(trials)
    result = Score(
        trials=[trial for trial in trials if trial.specimen],
        correct=[trial for trial in trials if not trial.specimen],
    )
    by_fault: dict[str, list[Trial]] = {}
    for trial in result.trials:
        by_fault.setdefault(trial.subject, []).append(trial)
    for slug, found in by_fault.items():
        fault = fault_of(slug)
        everywhere = all(_detected(fault, trial.statuses.get(fault.clause)) for trial in found)
        (result.detected if everywhere else result.survived).append(slug)
        result.spurious.extend(
            (slug, clause)
            for clause in dict.fromkeys(one for trial in found for one in trial.broken())
            if not fault.reaches(clauses()[clause].component)
        )
    result.idle.extend(_idle(set(by_fault), set(result.detected)))
    result.alarms.extend(
        dict.fromkeys(
            (trial.subject, clause, status)
            for trial in result.correct
            for clause, status in trial.statuses.items()
            if status.needs_words
        )
    )
    return result


def _detected(fault: "Fault", status: Status | None) -> bool:
    """Say whether `status` detects `fault`; an error does so where the mistake is a loud one."""
    if status is None:
        return False
    return status.contradicts or (status is Status.ERROR and fault.kind == "loud")


def _idle(tried: set[str], detected: set[str]) -> list[str]:
    """Return the clauses all of whose own faults were tried, and that detected none of them.

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
        if (mine or everything) and mine <= tried and not mine & detected
    ]


def _start(parent: int) -> None:
    """Import what every trial needs; a worker has one thread, and ends with its `parent`."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _prepare()


@cache
def _prepare() -> None:
    """Import what every trial needs, once in a process, which computes with one thread."""
    import torch

    from attentest.faults import faults

    torch.set_num_threads(1)
    checks()
    faults()
    collect_rarely()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, however that was."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
