"""`attentest sweep`: design choices compared by a grid of trainings."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from attentest.interfaces.cli import options
from attentest.interfaces.cli.training.learn import regime_options
from attentest.interfaces.cli.training.records import recorded, records_folder
from attentest.interfaces.cli.usage import Usage, late, usage
from attentest.interfaces.cli.written import checked
from attentest.results import files
from attentest.results.optional import Missing
from attentest.results.output import create
from attentest.studies.cluster import NoScheduler
from attentest.studies.learning.task import BadTask
from attentest.studies.sweep.engine import cores
from attentest.studies.sweep.grid import Grid
from attentest.studies.sweep.record import Folder
from attentest.studies.sweep.sweep import over
from attentest.views.plots.drawing import render
from attentest.views.plots.sweep import effects
from attentest.views.sweep import show
from attentest_spec import CHOICES
from attentest_spec.choices import Value
from attentest_spec.names import require

FOLDER = "attentest-sweep"


@click.command("sweep")
@click.argument("target", default="paper")
@click.option(
    "--choice",
    "choices",
    multiple=True,
    metavar="NAME=A,B,..",
    help="Declare options of a design choice, the base first (repeatable).",
)
@click.option(
    "--axis",
    "axes",
    multiple=True,
    metavar="NAME=1,2,..",
    help="Values of a setting, as d_model, layers or train_length (repeatable).",
)
@click.option("--one-at-a-time", is_flag=True, help="Vary one factor, the others at their base.")
@regime_options
@options.seed("weights and questions")
@options.seeds
@records_folder(FOLDER)
@options.workers
@options.scheduler
@options.json_file
@options.plot
def sweep_command(
    target: str,
    choices: tuple[str, ...],
    axes: tuple[str, ...],
    one_at_a_time: bool,
    seed: int,
    seeds: int,
    folder: Path,
    workers: int,
    scheduler: str,
    json_file: Path | None,
    plot: Path | None,
    task: str,
    **asked: Any,
) -> None:
    """Train TARGET under every combination of choices and settings; show what each changes.

    TARGET is "paper", where any choice can be varied, or a backend. --task takes several tasks,
    between commas. Every finished training is a record in the folder: the same command goes on
    with those that are missing. Exit code 0: all were trained; 1: one failed; 2: usage; 130:
    interrupted.
    """
    try:
        with usage():
            grid = Grid(
                target,
                dict(_levels(choices, _option)),
                dict(_levels(axes, _number)),
                tuple(task.split(",")),
                tuple(range(seed, seed + seeds)),
                one_at_a_time,
                {name: one for name, one in asked.items() if one is not None},
            )
            checked("sweep", json_file, plot)
            os.environ.setdefault("OMP_NUM_THREADS", "1")  # of workers, which start after this
            with recorded(len(grid.plans), folder) as listener:
                found = over(grid, Folder(folder), workers or cores(), scheduler, listener)
            show(Console(), found)
            with late():
                files.write(json_file, "sweep", found.as_dict())
            if plot is not None:
                create(plot, render(effects(found.as_dict()), plot.suffix[1:]))
    except (BadTask, Missing, NoScheduler) as wrong:
        raise Usage(str(wrong)) from wrong
    sys.exit(1 if found.failures else 0)


def _levels(given: Sequence[str], read: Any) -> Iterator[tuple[str, tuple[Value, ...]]]:
    """Yield the name and the levels of every option NAME=A,B."""
    names = set()
    for word in given:
        name, sign, levels = word.partition("=")
        if not sign or not levels:
            raise Usage(f"{word!r} is not of the form NAME=A,B,.. Give a name and its levels.")
        if name in names:
            raise Usage(f"{name} is given more than once. Put all its levels into one option.")
        names.add(name)
        yield name, tuple(read(name, one) for one in levels.split(","))


def _option(name: str, text: str) -> Value:
    choice = CHOICES[require("choice", name, CHOICES)]
    if choice.number:
        with suppress(ValueError):
            return float(text)
    return text


def _number(name: str, text: str) -> Value:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text
