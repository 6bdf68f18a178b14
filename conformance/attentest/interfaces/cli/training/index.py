"""`attentest index`: catalogued mistakes in small trainings, and what shows them."""

import os
from pathlib import Path

import click
from rich.console import Console

from attentest.interfaces.cli import options
from attentest.interfaces.cli.training.records import recorded, records_folder
from attentest.interfaces.cli.usage import Usage, late, usage
from attentest.interfaces.cli.written import checked
from attentest.results import files
from attentest.results.optional import Missing
from attentest.results.output import create
from attentest.studies.cluster import NoScheduler
from attentest.studies.index.index import FEWEST, Whole
from attentest.studies.index.result import SETTINGS
from attentest.studies.learning.task import BadTask
from attentest.studies.sweep.engine import cores
from attentest.studies.sweep.record import Folder
from attentest.views.index import show
from attentest.views.plots.drawing import render
from attentest.views.plots.index import evidence_bars

FOLDER = "attentest-index"


@click.command("index")
@click.argument("slugs", nargs=-1)
@click.option(
    "--sample",
    "count",
    default=0,
    type=options.FROM_ZERO,
    help="Inject so many mistakes, from each component its share (default: all).",
)
@click.option(
    "--task",
    default=",".join(SETTINGS),
    show_default=True,
    help=f"One of {', '.join(SETTINGS)}, or several between commas.",
)
@options.seed("weights and questions")
@click.option(
    "--seeds",
    default=FEWEST,
    show_default=True,
    type=options.FROM_ONE,
    help=f"Number of seeds, from that of --seed on, at least {FEWEST}.",
)
@records_folder(FOLDER)
@options.workers
@options.scheduler
@options.json_file
@options.plot
def index_command(
    slugs: tuple[str, ...],
    count: int,
    task: str,
    seed: int,
    seeds: int,
    folder: Path,
    workers: int,
    scheduler: str,
    json_file: Path | None,
    plot: Path | None,
) -> None:
    """Inject the mistakes SLUGS (all by default) into a model, train it, and count what shows them.

    Each is trained on small tasks, and compared with the correct model from the same questions
    and weights.
    The training loss, the held-out loss or the accuracy of greedy decoding shows a mistake where
    it leaves the range of the seeds. Every finished training is a record in the folder: the same
    command goes on with those that are missing. Exit code 0: done; 2: usage; 130: interrupted.
    """
    try:
        with usage():
            whole = Whole.of(slugs, count, tuple(task.split(",")), range(seed, seed + seeds))
            checked("index", json_file, plot)
            os.environ.setdefault("OMP_NUM_THREADS", "1")  # of workers, which start after this
            total = len(whole.correct) + len(whole.faulty)
            with recorded(total, folder) as listener:
                found = whole.over(Folder(folder), workers or cores(), scheduler, listener)
            show(Console(), found)
            with late():
                files.write(json_file, "index", found.as_dict())
            if plot is not None:
                create(plot, render(evidence_bars(found.as_dict()), plot.suffix[1:]))
    except (BadTask, Missing, NoScheduler) as wrong:
        raise Usage(str(wrong)) from wrong
