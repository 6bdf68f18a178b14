"""Runs the trainings of a sweep: in this process, or as tasks of Dask workers.

Without the address of a scheduler the workers are processes of this machine. A record is stored by
the worker that made it, where it sees the folder, and by this process: what has ended before an
interruption is not trained again.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attentest.studies.cluster import Lost, cluster
from attentest.studies.sweep.grid import Plan
from attentest.studies.sweep.record import MARK, Folder, Record, code_of, key_of
from attentest.studies.sweep.training import blank, train

Listener = Callable[[Record], None]
"""Called with every record, in the order in which the trainings end."""


def run(
    plans: Sequence[Plan],
    folder: Folder,
    *,
    workers: int = 0,
    scheduler: str = "",
    listener: Listener = lambda record: None,
) -> list[Record]:
    """Return the records of `plans` with their last points, in their order.

    Those that `folder` holds are read; the whole curves and the gradients are there, and in no
    memory.
    `workers` is the number of processes on this machine, and 0 trains in this process. A training
    whose worker is lost again and again fails, and is not stored: the next run tries it anew.
    Raises Missing where Dask is needed and not installed, NoScheduler where no scheduler answers,
    or no longer, and BadTask for a regime that cannot be.
    """
    keys = [key_of(plan) for plan in plans]
    found: dict[str, Record] = {}
    equal: dict[str, Mapping[str, Any]] = {}

    def ended(record: Record) -> None:
        found[record.key] = _small(record, equal)
        listener(record)

    for key in dict.fromkeys(keys):
        if (record := folder.load(key)) is not None:
            ended(record)
    waiting = {key: plan for key, plan in zip(keys, plans, strict=True) if key not in found}
    if waiting:
        made = _by_workers if workers or scheduler else _here
        for record in made(waiting, folder, workers, scheduler):
            ended(record)
    return [
        found[key] if found[key].levels == one.levels else replace(found[key], levels=one.levels)
        for key, one in zip(keys, plans, strict=True)
    ]


def _small(record: Record, equal: dict[str, Mapping[str, Any]]) -> Record:
    """Return `record` as it is kept in memory: thousands may be there at once.

    It has the last point, without norms of gradients. Of `equal` mappings one is kept.
    """

    def kept(one: Mapping[str, Any]) -> Mapping[str, Any]:
        return equal.setdefault(repr(one), one)

    return replace(
        record,
        points=tuple(replace(one, gradients={}) for one in record.points[-1:]),
        choices=kept(record.choices),
        regime=kept(record.regime),
        levels=kept(record.levels),
    )


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _here(
    waiting: dict[str, Plan], folder: Folder, workers: int, scheduler: str
) -> Iterator[Record]:
    for plan in waiting.values():
        record = train(plan)
        folder.keep(record)
        yield record


def _by_workers(
    waiting: dict[str, Plan], folder: Folder, workers: int, scheduler: str
) -> Iterator[Record]:
    tasks = ((key, (plan, code_of(plan.target), str(folder.path))) for key, plan in waiting.items())
    with cluster(workers, scheduler) as machines:
        for key, record in machines.each(trained, tasks):
            if isinstance(record, Lost):
                yield replace(blank(waiting[key]), reason=record.reason)
            else:
                folder.keep(record)
                yield record


def trained(plan: Plan, code: str, folder: str) -> Record:
    """Train on a worker, and store the record where the worker sees the folder."""
    record = train(plan, code)
    if (Path(folder) / MARK).exists():
        Folder(Path(folder)).keep(record)
    return record
