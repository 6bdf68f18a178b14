"""Prints what the engine of sweeps costs: `python sweeping.py`, on an idle machine.

Trainings of about two seconds are run in this process, and in turn by one worker and by two:
trainings per minute, how much faster two workers are (the median over the rounds), and the share of
the time that is not training (the engine's overhead). Then the memory of this process, which asks
for the trainings, is measured for 1,000 and for 10,000 records that are synthetic, and the time
that it takes for each. At last the time that the scheduler takes for one empty task says how many
workers it can keep at work.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import click
import psutil
from rich.console import Console
from rich.table import Table

from attentest.studies.cluster import cluster
from attentest.studies.learning.result import Point
from attentest.studies.sweep import engine
from attentest.studies.sweep.grid import Grid, Plan
from attentest.studies.sweep.record import Folder, Record, key_of
from attentest.studies.sweep.sweep import over
from attentest.studies.sweep.training import blank, train

TRAINING = {"steps": 200, "every": 200, "length": 5}
"""A training of about two seconds."""

BOUNDS = {"two workers": 1.7, "overhead": 0.05, "MiB": 16.0}
"""The bounds: times one worker, share of the time, growth of memory for 9,000 records."""

EMPTY = 2000
"""The number of empty tasks that the scheduler is timed with."""


def grid(seeds: int) -> Grid:
    """Return a sweep over so many seeds."""
    return Grid(seeds=tuple(range(seeds)), settings=TRAINING)


def seconds(seeds: int, workers: int) -> tuple[float, float]:
    """Return the time of so many trainings from the first to the last, and the sum of their own.

    The start of the workers is left out: it is the same for a sweep of any size.
    """
    ends: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        found = over(
            grid(seeds),
            Folder(Path(folder)),
            workers,
            listener=lambda record: ends.append((time.perf_counter(), record.seconds)),
        )
    if found.failures:
        raise click.ClickException(f"A training failed: {found.failures[0].reason}.")
    first = max(1, workers)  # each worker's first one imports torch
    return ends[-1][0] - ends[first - 1][0], sum(spent for _, spent in ends[first:])


@contextmanager
def synthetic() -> Iterator[None]:
    """Let a training be a record that is made up."""
    point = Point(0, None, 1.0, 0.5, 0.5, gradients={f"part.{one}": 0.1 for one in range(12)})

    def made(plan: Plan, code: str = "") -> Record:
        points = tuple(replace(point, step=step) for step in range(20))
        return replace(blank(plan), points=points, seconds=2.0)

    engine.train = made
    try:
        yield
    finally:
        engine.train = train


def memory(records: int) -> tuple[float, float]:
    """Return the growth of this process in MiB over so many records, and the seconds for each."""
    process = psutil.Process()
    key_of(grid(1).plans[0])  # reads all files, once
    before, begun = process.memory_info().rss, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, synthetic():
        found = over(grid(records), Folder(Path(folder)))
        grown = process.memory_info().rss - before
        elapsed = time.perf_counter() - begun
        assert len(found.records) == records
    return grown / 2**20, elapsed / records


def empty_task() -> float:
    """Return the seconds that the scheduler and one worker take for a task that does nothing."""
    with cluster(1, "") as machines:
        list(machines.each(abs, ((one, (one,)) for one in range(100))))
        begun = time.perf_counter()
        list(machines.each(abs, ((one, (one,)) for one in range(EMPTY))))
        return (time.perf_counter() - begun) / EMPTY


@click.command()
@click.option("--trainings", default=10, show_default=True, help="Trainings of a worker a round.")
@click.option("--rounds", default=3, show_default=True, help="Rounds with one worker and two.")
@click.option("--records", default=10_000, show_default=True, help="Synthetic records.")
def main(trainings: int, rounds: int, records: int) -> None:
    """Measure, print, and exit with 1 where a bound is not kept."""
    rates: dict[int, list[float]] = {0: [], 1: [], 2: []}
    spent = []
    for workers in (0, *(1, 2) * rounds):
        elapsed, own = seconds(trainings * max(1, workers), workers)
        rates[workers].append(60 * (trainings - 1) * max(1, workers) / elapsed)
        if workers == 1:
            spent.append(1 - own / elapsed)
    faster = median(two / one for one, two in zip(rates[1], rates[2], strict=True))
    overhead = median(spent)
    (few, _), (many, each) = memory(records // 10), memory(records)
    task = empty_task()
    found: dict[str, Any] = {
        "trainings per minute, in this process": _listed(rates[0]),
        "trainings per minute, one worker": _listed(rates[1]),
        "trainings per minute, two workers": _listed(rates[2]),
        "two workers, times one": f"{faster:.2f}",
        "overhead with one worker": f"{overhead:.1%}",
        f"memory for {records // 10} records, MiB": f"{few:.0f}",
        f"memory for {records} records, MiB": f"{many:.0f}",
        "milliseconds for a record, in this process": f"{1e3 * each:.2f}",
        "milliseconds for an empty task": f"{1e3 * task:.2f}",
        "workers kept busy with trainings of 2 s": f"{2 / (task + each):.0f}",
    }
    table = Table(box=None)
    for name, one in found.items():
        table.add_row(name, one)
    Console().print(table)
    kept = (
        faster >= BOUNDS["two workers"]
        and overhead < BOUNDS["overhead"]
        and many - few < BOUNDS["MiB"]
    )
    sys.exit(int(not kept))


def _listed(several: list[float]) -> str:
    return ", ".join(f"{one:.1f}" for one in several)


if __name__ == "__main__":
    main()
