"""`attentest faults`: the suite's own score."""

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from attentest.interfaces.cli import options
from attentest.interfaces.cli.usage import Usage, late, usage
from attentest.judging import trials
from attentest.judging.score import LostTask, Score, score
from attentest.judging.trials import Task
from attentest.results.optional import Missing
from attentest.results.output import opened
from attentest.studies.cluster import NoScheduler
from attentest.views import detection
from attentest.views.terminal import progress


@click.command("faults")
@click.argument("slugs", nargs=-1)
@options.component
@click.option("--own", "alone", is_flag=True, help="Judge by the fault's own clause alone.")
@click.option("--everything", is_flag=True, help="Judge every clause in full, with every seed.")
@click.option("--diagnose", is_flag=True, help="See how often the diagnosis names the fault.")
@options.workers
@options.scheduler
@options.seed("all drawn inputs")
@options.seeds
@click.option("--random", "fresh", is_flag=True, help="Draw a fresh seed and print it.")
@options.json_file
def faults_command(
    slugs: tuple[str, ...],
    components: tuple[str, ...],
    alone: bool,
    everything: bool,
    diagnose: bool,
    workers: int,
    scheduler: str,
    seed: int,
    seeds: int,
    fresh: bool,
    json_file: Path | None,
) -> None:
    """Score the suite itself: inject the faults SLUGS (all by default) and count the detected ones.

    Each is judged in full by its own clause, in both reference models and with every seed, and by
    one example of the other clauses that it can reach. If no fault is named, unusual but correct
    implementations are judged too: a failure of one of them is a false alarm.

    Exit code 0: every fault is detected by its own clause and by none that it cannot reach,
    every clause detects one of its own, and there is no false alarm.
    """
    seed = random.SystemRandom().randrange(1, 2**31) if fresh else seed
    with usage():
        chosen = trials.tasks(
            slugs,
            components,
            range(seed, seed + seeds),
            alone=alone,
            everything=everything,
            diagnose=diagnose,
        )
    if not chosen:
        raise Usage("No fault is left: the named faults are not of the named components.")
    console = Console()
    if seed:
        console.print(f"seed {seed} (replay with --seed {seed} --seeds {seeds})")
    with usage(), late(), opened(json_file, '{"format"') as file:
        found = _scored(chosen, workers, scheduler)
        if file:
            json.dump(found.as_dict(), file)
    detection.show(console, found)
    sys.exit(int(not found.perfect))


def _scored(chosen: Sequence[Task], workers: int, scheduler: str) -> Score:
    with progress() as bar:
        task = bar.add_task("faults", total=len(chosen))
        try:
            return score(
                chosen,
                workers=workers,
                scheduler=scheduler,
                listener=lambda done: bar.advance(task),
            )
        except (LostTask, Missing, NoScheduler) as failure:
            raise Usage(str(failure)) from failure
