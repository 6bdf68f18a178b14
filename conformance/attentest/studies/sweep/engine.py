"""Runs the trainings of a sweep: in this process, or as tasks of Dask workers.

Without the address of a scheduler the workers are processes of this machine. A record is stored by
the worker that made it, where it sees the folder, and by this process: what has ended before an
interruption is not trained again.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import overload

from attentest.results.output import Occupied
from attentest.studies.cluster import Lost, cluster
from attentest.studies.sweep.grid import Plan
from attentest.studies.sweep.record import MARK, Folder, Record, code_of, key_of
from attentest.studies.sweep.training import blank, train

Listener = Callable[[Record], None]
"""Called with every record, in the order in which the trainings end."""


@dataclass(frozen=True)
class Results(Sequence[Record]):
    """The records of plans, in their order, each read from the folder when it is asked for.

    Nothing of them is in memory, whatever their number, but those in `lost`: trainings that failed
    with their workers, by key, which are not stored. Raises Occupied for a record that was removed
    since.
    """

    plans: Sequence[Plan]
    folder: Folder
    lost: Mapping[str, Record]

    def __len__(self) -> int:
        """Return the number of trainings."""
        return len(self.plans)

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...

    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        """Return the record at `index`, with the levels of its plan, or those of a slice."""
        if isinstance(index, slice):
            return tuple(self[one] for one in range(*index.indices(len(self))))
        plan = self.plans[index]
        key = key_of(plan)
        if (record := self.ended(key)) is None:
            raise Occupied(
                f"The record {key} is no longer in {self.folder.path}. The same command trains it "
                f"again."
            )
        return replace(record, levels=plan.levels)

    def ended(self, key: str) -> Record | None:
        """Return the record of `key`; None for a training that has not ended."""
        return self.lost.get(key) or self.folder.load(key)


def run(
    plans: Sequence[Plan],
    folder: Folder,
    *,
    workers: int = 0,
    scheduler: str = "",
    listener: Listener = lambda record: None,
) -> Results:
    """Train what `folder` does not hold of `plans`, and return the records in their order.

    `workers` is the number of processes on this machine, and 0 trains in this process. A training
    whose worker is lost again and again fails, and is not stored: the next run tries it anew.
    Raises Missing where Dask is needed and not installed, NoScheduler where no scheduler answers,
    or no longer, and BadTask for a regime that cannot be.
    """
    lost: dict[str, Record] = {}
    results = Results(plans, folder, lost)
    waiting = [False] * len(plans)
    for index, plan in enumerate(plans):
        record = folder.load(key_of(plan))
        waiting[index] = record is None
        if record is not None:
            listener(record)
    if any(waiting):
        asked: set[str] = set()
        made = _by_workers if workers or scheduler else _here
        for record in made(_missing(plans, waiting, results, asked), folder, workers, scheduler):
            if folder.load(record.key) is None:
                lost[record.key] = record
            asked.remove(record.key)
            listener(record)
    for index, twin in enumerate(waiting):
        if twin:
            listener(results[index])
    return results


def _missing(
    plans: Sequence[Plan], waiting: list[bool], results: Results, asked: set[str]
) -> Iterator[Plan]:
    """Yield each training that is `waiting` and neither `asked` for nor ended.

    Levels that make no difference give plans that are one training: all but the first of these
    are left waiting.
    """
    for index, _ in filter(itemgetter(1), enumerate(waiting)):
        key = key_of(plans[index])
        if key not in asked and results.ended(key) is None:
            asked.add(key)
            waiting[index] = False
            yield plans[index]


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _here(
    missing: Iterator[Plan], folder: Folder, workers: int, scheduler: str
) -> Iterator[Record]:
    for plan in missing:
        record = train(plan)
        folder.keep(record)
        yield record


def _by_workers(
    missing: Iterator[Plan], folder: Folder, workers: int, scheduler: str
) -> Iterator[Record]:
    tasks = ((plan, (plan, code_of(plan.target), str(folder.path))) for plan in missing)
    with cluster(workers, scheduler) as machines:
        for plan, record in machines.each(trained, tasks):
            if isinstance(record, Lost):
                yield replace(blank(plan), reason=record.reason)
            else:
                folder.keep(record)
                yield record


def trained(plan: Plan, code: str, folder: str) -> Record:
    """Train on a worker, and store the record where the worker sees the folder."""
    record = train(plan, code)
    if (Path(folder) / MARK).exists():
        Folder(Path(folder)).keep(record)
    return record
