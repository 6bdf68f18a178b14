"""Prints how long the tasks of `attentest learn` take to an accuracy: `python learning.py TARGET`.

The sizes and settings are the task's own. Seconds are those of the processor, without the start of
a process: they hold on a busy machine too. Exit code 1 where an accuracy is not reached.
"""

import os
import sys

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported

import click
from rich.console import Console
from rich.table import Table

from attentest.studies.learning import TASKS, Curve, learn

REACHED = {
    "copy": 0.9,
    "reversal": 0.85,
    "addition": 0.5,
    "modular-addition": 0.95,
    "agreement": 0.98,
    "translation": 0.95,
}
"""The share of held-out questions that greedy decoding has to get right, by task."""


def row(curve: Curve, task: str) -> tuple[str, ...]:
    """Return the figures of a training, as text."""
    end = curve.points[-1]
    step = curve.first("sequences", REACHED[task])
    seconds = "-" if step is None else f"{curve.cpu_seconds * step / end.step:.0f}"
    shown = "-" if step is None else str(step)
    whole = f"{curve.cpu_seconds:.0f}"
    best = max(point.sequences for point in curve.points)
    return task, str(curve.seed), f"{REACHED[task]:.0%}", shown, seconds, whole, f"{best:.1%}"


@click.command()
@click.argument("target")
@click.option("--task", "tasks", multiple=True, type=click.Choice([*TASKS]))
@click.option("--seeds", default=1, show_default=True)
def main(target: str, tasks: tuple[str, ...], seeds: int) -> None:
    """Train TARGET on all tasks, or those named, and print the time to the accuracy."""
    table = Table("task", "seed", "accuracy", "step", "CPU s", "CPU s in all", "best", box=None)
    missed = 0
    for task in tasks or TASKS:
        for curve in learn(target, task=task, seeds=seeds).curves:
            cells = row(curve, task)
            missed += cells[3] == "-"
            table.add_row(*cells)
    Console().print(table)
    sys.exit(int(missed > 0))


if __name__ == "__main__":
    main()
