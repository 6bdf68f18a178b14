"""The suite's own score: which planted faults it kills, and whether it cries wolf.

Every fault is planted in its specimens and judged. It is killed when its own clause says
violation (or error, where the mistake is a loud one) on each of them, with every seed. A fault
that its clause does not kill, a clause that kills no fault, a clause that trips over a fault of a
component that its own does not contain, and a clause that a sound oddity of the zoo does not
conform to are each an error of the suite.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from attentest.outcome import FAILURES
from attentest_spec.clauses import clauses

KILLING = frozenset({"violation", "warning"})
CALM = frozenset({"pass", "deviation", "absent"})


@dataclass(frozen=True)
class Trial:
    """One backend judged with one seed: the status of every clause that was judged.

    `subject` is the slug of a fault and `specimen` what it was planted in, or `subject` is a
    sound oddity of the zoo and `specimen` is "".
    """

    subject: str
    specimen: str
    seed: int
    statuses: Mapping[str, str]

    def tripped(self) -> list[str]:
        """Return the clauses that noticed."""
        return [slug for slug, status in self.statuses.items() if status in KILLING | FAILURES]


@dataclass(frozen=True)
class Score:
    """What came out of all trials.

    `killed` and `survived` are faults, `idle` clauses that killed none of their own, `spurious`
    pairs of a fault and a clause that should not have noticed it, `alarms` triples of a sound
    oddity, a clause that it does not conform to, and the status.
    """

    trials: list[Trial]
    sound: list[Trial] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    survived: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    spurious: list[tuple[str, str]] = field(default_factory=list)
    alarms: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def perfect(self) -> bool:
        """Whether there is no error of the suite."""
        return not (self.survived or self.idle or self.spurious or self.alarms)

    @property
    def seeds(self) -> list[int]:
        """The seeds of all trials."""
        return sorted({trial.seed for trial in [*self.trials, *self.sound]})

    def as_dict(self) -> dict[str, Any]:
        """Return the score as plain values, for `--json`."""
        return {
            "format": 1,
            "seeds": self.seeds,
            "killed": self.killed,
            "survived": self.survived,
            "idle clauses": self.idle,
            "spurious": [list(pair) for pair in self.spurious],
            "zoo": sorted({trial.subject for trial in self.sound}),
            "false alarms": [list(alarm) for alarm in self.alarms],
            "trials": [vars(trial) for trial in self.trials],
        }


@dataclass(frozen=True)
class Task:
    """One fault, or with `oddity` one sound oddity, to be judged with every seed.

    With the first seed the clauses in reach are judged: the fault's own as in a run, the others
    by one example each; with the other seeds its own alone. `everything` judges every clause as
    in a run, with every seed.
    """

    subject: str
    seeds: tuple[int, ...]
    oddity: bool = False
    everything: bool = False

    def trials(self) -> list[Trial]:
        """Judge, and return what came out."""
        return self._sound() if self.oddity else self._planted()

    def _planted(self) -> list[Trial]:
        from attentest.bench import Bench
        from attentest.faults import fault_of, planted
        from attentest.judge import judge

        fault = fault_of(self.subject)
        reached = [one.slug for one in clauses().values() if fault.reaches(one.component)]
        found = []
        for specimen in fault.specimens:
            backend = planted(fault, specimen)
            for seed in self.seeds:
                full = Bench(backend, seed=seed, shrink=False, diagnose=False)
                glance = Bench(backend, seed=seed, effort=0.0, shrink=False, diagnose=False)
                wanted = reached if seed == self.seeds[0] else [fault.clause]
                statuses = {
                    slug: judge(
                        full if self.everything or slug == fault.clause else glance, slug
                    ).status
                    for slug in (clauses() if self.everything else wanted)
                }
                found.append(Trial(self.subject, specimen, seed, statuses))
        return found

    def _sound(self) -> list[Trial]:
        from attentest.bench import Bench
        from attentest.judge import judge
        from attentest.zoo import ZOO

        backend = ZOO[self.subject]
        provided = [one.slug for one in clauses().values() if one.component in backend.components]
        found = []
        for seed in self.seeds:
            bench = Bench(backend, seed=seed, shrink=False, diagnose=False)
            statuses = {slug: judge(bench, slug).status for slug in provided}
            found.append(Trial(self.subject, "", seed, statuses))
        return found


def score(
    tasks: Sequence[Task],
    *,
    workers: int = 2,
    listener: Callable[[Task], None] = lambda task: None,
) -> Score:
    """Carry out `tasks` and return the score; the workers import torch once each."""
    trials: list[Trial] = []
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start) as pool:
        asked = {pool.submit(task.trials): task for task in tasks}
        for answer in as_completed(asked):
            trials += answer.result()
            listener(asked[answer])
    order = {task.subject: number for number, task in enumerate(tasks)}
    trials.sort(key=lambda trial: (order[trial.subject], trial.specimen, trial.seed))
    return scored(trials)


def scored(trials: Iterable[Trial]) -> Score:
    """Sum the trials up."""
    from attentest.faults import fault_of

    trials = list(trials)
    result = Score(
        trials=[trial for trial in trials if trial.specimen],
        sound=[trial for trial in trials if not trial.specimen],
    )
    by_fault: dict[str, list[Trial]] = {}
    for trial in result.trials:
        by_fault.setdefault(trial.subject, []).append(trial)
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
    result.alarms.extend(
        dict.fromkeys(
            (trial.subject, clause, status)
            for trial in result.sound
            for clause, status in trial.statuses.items()
            if status not in CALM
        )
    )
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
