"""The trainings of the silent-bug index: injected mistakes on small tasks, and correct code."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from attentest.faults.catalogue import fault_of, faults
from attentest.studies.index.evidence import Evidence, evidence
from attentest.studies.index.population import Injected, injected, population, sample
from attentest.studies.index.result import COMMON, SETTINGS, Entry, Index
from attentest.studies.learning.task import BadTask
from attentest.studies.sweep.engine import Listener, run
from attentest.studies.sweep.grid import TASK, Plan
from attentest.studies.sweep.record import Folder, Record
from attentest_spec.names import require

TARGET = "paper"

RANGE = 2
"""Usual models are trained from so many times the seeds: their range is compared with."""

FEWEST = 3
"""The smallest number of seeds: fewer have no range to speak of."""


def index(
    slugs: Iterable[str] = (),
    *,
    count: int = 0,
    tasks: Iterable[str] = tuple(SETTINGS),
    seeds: int | Iterable[int] = FEWEST,
    folder: Path | str | None = None,
    workers: int = 0,
    scheduler: str = "",
    listener: Listener = lambda record: None,
) -> Index:
    """Train models with the mistakes `slugs` and without, and say what shows each.

    Without slugs it is all mistakes of the catalogue that the trainings can contain, and with a
    `count` so many of them, from each component its share. With a `folder` an interrupted index
    goes on; `workers` and `scheduler` are those of :func:`attentest.sweep`.

    Raises UnknownName for a slug or a task that is none, BadTask for a mistake that no training
    contains, for fewer than three seeds and where a correct training fails, Occupied for a folder
    of something else, Missing where Dask is needed and not installed, and NoScheduler where no
    scheduler answers, or no longer.
    """
    whole = Whole.of(slugs, count, tasks, seeds)
    kept = Folder.temporary() if folder is None else Folder(Path(folder))
    return whole.over(kept, workers, scheduler, listener)


@dataclass(frozen=True)
class Whole:
    """All trainings of an index: with the mistakes, and without."""

    mistakes: tuple[Injected, ...]
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]

    @classmethod
    def of(
        cls, slugs: Iterable[str], count: int, tasks: Iterable[str], seeds: int | Iterable[int]
    ) -> "Whole":
        """Choose the mistakes; see :func:`index`."""
        named = tuple(dict.fromkeys(slugs))
        chosen = tuple(map(_demanded, named)) if named else sample(population(), count)
        numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
        if len(set(numbers)) < FEWEST or min(numbers) < 0:
            raise BadTask(
                f"The range over the seeds needs at least {FEWEST} different seeds from 0 on; "
                f"{list(numbers)} are given."
            )
        return cls(
            chosen, tuple(require("task of the index", one, SETTINGS) for one in tasks), numbers
        )

    @cached_property
    def correct(self) -> tuple[Plan, ...]:
        """The trainings without a mistake: each kind of model, the usual ones from more seeds."""
        usual = {_kind(one.usual): one.usual for one in self.mistakes}
        kinds = {_kind(one): one for one in self.mistakes} | usual
        beyond = max(self.seeds) + 1
        more = tuple(range(beyond, beyond + (RANGE - 1) * len(self.seeds)))
        return tuple(
            _plan(one, task, seed, "")
            for kind, one in kinds.items()
            for task in self.tasks
            for seed in self.seeds + (more if kind in usual else ())
        )

    @cached_property
    def faulty(self) -> tuple[Plan, ...]:
        """The trainings with a mistake."""
        return tuple(
            _plan(one, task, seed, one.slug)
            for one in self.mistakes
            for task in self.tasks
            for seed in self.seeds
        )

    def over(
        self,
        folder: Folder,
        workers: int = 0,
        scheduler: str = "",
        listener: Listener = lambda record: None,
    ) -> Index:
        """Train all that `folder` does not hold, and classify the mistakes.

        A mistake that changes no number on any task from the first seed is not trained from the
        others.
        """
        train = partial(run, workers=workers, scheduler=scheduler, listener=listener)
        groups: dict[tuple[str, str], list[Record]] = {}
        first = [plan for plan in self.faulty if plan.seed == self.seeds[0]]
        _group(groups, (*self.correct, *first), train, folder)
        changed = {
            one.slug
            for one in self.mistakes
            if self._entry(one, groups).evidence is not Evidence.UNCHANGED
        }
        others = [
            plan for plan in self.faulty if plan.seed != self.seeds[0] and plan.fault in changed
        ]
        _group(groups, others, train, folder)
        entries = tuple(self._entry(one, groups) for one in self.mistakes)
        every = population()
        return Index(entries, self.tasks, self.seeds, len(every), len(faults()) - len(every))

    def _entry(self, one: Injected, groups: Mapping[tuple[str, str], Sequence[Record]]) -> Entry:
        found = {}
        for task in self.tasks:
            faulty, twins, usual = (
                groups[name, task] for name in (one.slug, _kind(one), _kind(one.usual))
            )
            correct = [record for record in twins if record.seed in self.seeds]
            try:
                found[task] = evidence(faulty, correct, usual)
            except ValueError as failure:
                raise BadTask(f"{task} under {dict(one.choices)}: {failure}.") from failure
        return Entry(one.slug, one.component, fault_of(one.slug).wrong, found)


def _group(
    groups: dict[tuple[str, str], list[Record]],
    plans: Sequence[Plan],
    train: Callable[[Sequence[Plan], Folder], Sequence[Record]],
    folder: Folder,
) -> None:
    """Carry `plans` out and put their records into `groups`, by mistake and task."""
    for plan, record in zip(plans, train(plans, folder), strict=True):
        groups.setdefault((str(plan.levels[MISTAKE]), plan.task), []).append(record)


MISTAKE = "mistake"
"""The level of a plan that groups trainings: the slug of a mistake, or a kind of correct model."""


def _plan(one: Injected, task: str, seed: int, fault: str) -> Plan:
    settings = {**COMMON, **SETTINGS[task], **one.settings}
    levels = {MISTAKE: fault or _kind(one), TASK: task}
    return Plan(TARGET, task, one.choices, settings, levels, seed, fault)


def _kind(one: Injected) -> str:
    """Return what identifies the correct model of `one`: its choices and its settings."""
    return " ".join(f"{name}={value}" for name, value in {**one.choices, **one.settings}.items())


def _demanded(slug: str) -> Injected:
    fault = fault_of(slug)
    found = injected(fault)
    if found is None:
        raise BadTask(
            f"No training of the index contains the mistake {slug}, of the component "
            f"{fault.component}: it is not trained there, or it is wrong in the text of an error."
        )
    return found
