"""Runs the trainings of a sweep: in this process, or as tasks of Dask workers.

Without the address of a scheduler the workers are processes of this machine. A record is stored by
the worker that made it, where it sees the folder, and by this process: what has ended before an
interruption is not trained again.
"""

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from attentest.results.optional import needed
from attentest.results.text import summary
from attentest.studies.learning.task import BadTask
from attentest.studies.sweep.grid import Plan
from attentest.studies.sweep.record import MARK, Folder, Record, code_of, key_of
from attentest.studies.sweep.training import blank, train

EXTRA = "sweep"
"""The extra of the suite with the libraries that workers need."""

AHEAD = 4
"""The number of trainings that are handed to the scheduler for each worker; the others wait."""

CONNECT = "10s"
"""The time in which a scheduler has to answer."""

LOSSES = 3
"""The number of workers that may be lost under one training before it fails."""

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

    Those that `folder` holds are read; the whole curves are there, and in no memory.
    `workers` is the number of processes on this machine, and 0 trains in this process. A training
    whose worker is lost again and again fails, and is not stored: the next run tries it anew.
    Raises Missing where Dask is needed and not installed, and :class:`BadTask` for a regime that
    cannot be.
    """
    keys = [key_of(plan) for plan in plans]
    found: dict[str, Record] = {}

    def ended(record: Record) -> None:
        found[record.key] = replace(record, points=record.points[-1:])
        listener(record)

    for key in dict.fromkeys(keys):
        if (record := folder.load(key)) is not None:
            ended(record)
    waiting = {key: plan for key, plan in zip(keys, plans, strict=True) if key not in found}
    if waiting:
        made = _by_workers if workers or scheduler else _here
        for record in made(waiting, folder, workers, scheduler):
            ended(record)
    return [replace(found[key], levels=one.levels) for key, one in zip(keys, plans, strict=True)]


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
    distributed = needed("distributed", EXTRA)
    with _client(distributed, workers, scheduler) as client:
        rest = iter(waiting.items())
        room = AHEAD * max(1, len(client.scheduler_info(n_workers=-1)["workers"]) or workers)

        def submit(key: str, plan: Plan) -> Any:
            code, path = code_of(plan.target), str(folder.path)
            return client.submit(trained, plan, code, path, key=f"{EXTRA}-{key}", pure=False)

        futures = distributed.as_completed(
            [submit(key, plan) for key, plan in islice(rest, room)],
            loop=client.loop,
            raise_errors=False,
        )
        for future in futures:
            key = future.key.removeprefix(f"{EXTRA}-")
            failure = future.exception()
            if failure is None:
                record = future.result()
                folder.keep(record)
            else:
                record = replace(blank(waiting[key]), reason=_lost(failure))
            future.release()
            for following in islice(rest, 1):
                futures.add(submit(*following))
            yield record


def _lost(failure: BaseException) -> str:
    if type(failure).__name__ == "KilledWorker":
        return f"{LOSSES + 1} workers were lost while they trained it; out of memory, perhaps"
    return f"no worker could train it: {summary(failure)}"


def trained(plan: Plan, code: str, folder: str) -> Record:
    """Train on a worker, and store the record where the worker sees the folder."""
    record = train(plan, code)
    if (Path(folder) / MARK).exists():
        Folder(Path(folder)).keep(record)
    return record


@contextmanager
def _client(distributed: Any, workers: int, scheduler: str) -> Iterator[Any]:
    """Yield a client of the scheduler at an address, or of workers of this machine."""
    settings = {
        "distributed.scheduler.allowed-failures": LOSSES,
        "distributed.comm.timeouts.connect": CONNECT,
    }
    with needed("dask", EXTRA).config.set(settings), _quiet():
        if scheduler:
            try:
                client = distributed.Client(scheduler, set_as_default=False)
            except (OSError, ValueError) as failure:
                raise BadTask(
                    f"No scheduler answers at {scheduler}: {summary(failure)}."
                ) from failure
            with client:
                yield client
            return
        with _without_interruption():
            cluster = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
        with cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to itself what the libraries log of connections that end: an interruption ends all."""
    levels = {name: logging.getLogger(name).level for name in ("asyncio", "distributed", "tornado")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def _without_interruption() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: this one ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
