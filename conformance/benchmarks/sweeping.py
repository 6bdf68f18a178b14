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
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
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

BOUNDS = {"two workers": 1.7, "overhead": 0.05, "MiB": 4.0}
"""The bounds: times one worker, share of the time, growth of memory for 9,000 records."""

EMPTY = 2000
"""The number of empty tasks that the scheduler is timed with."""


def grid(seeds: int) -> Grid:
    """Return a sweep over so many seeds."""
    return Grid(seeds=tuple(range(seeds)), settings=TRAINING)


def measured(seeds: int, workers: int) -> tuple[float, float]:
    """Return the trainings per minute, and the share of the time that is not training.

    It is measured from the moment at which every worker has ended its first training: the start of
    the workers is the same for a sweep of any size. A training that had begun by then counts with
    the part that came after.
    """
    ends: list[tuple[float, float]] = []
    found = over(
        grid(seeds),
        Folder.temporary(),
        workers,
        listener=lambda record: ends.append((time.perf_counter(), record.seconds)),
    )
    if found.failures:
        raise click.ClickException(f"A training failed: {found.failures[0].reason}.")
    first = max(1, workers)
    (begun, _), (ended, _) = ends[first - 1], ends[-1]
    trained = [min(own, end - begun) for end, own in ends[first:]]
    parts = [spent / own for spent, (_, own) in zip(trained, ends[first:], strict=True)]
    return 60 * sum(parts) / (ended - begun), 1 - sum(trained) / first / (ended - begun)


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
    with synthetic():
        found = over(grid(records), Folder.temporary())
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
        rate, other = measured(trainings * max(1, workers), workers)
        rates[workers].append(rate)
        if workers == 1:
            spent.append(other)
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
