"""`attentest faults`: the suite's own score."""

import json
import sys
from pathlib import Path

import click
from rich.console import Console

from attentest import kills
from attentest.commands.usage import Usage, usage
from attentest.output import opened, progress
from attentest.score import Score, score


@click.command("faults")
@click.argument("slugs", nargs=-1)
@click.option("--component", "components", multiple=True, help="Faults of this component alone.")
@click.option("--everything", is_flag=True, help="Judge every clause, not just those in reach.")
@click.option("--workers", default=2, show_default=True, help="Processes at work.")
@click.option("--seed", default=0, show_default=True, help="Seed of all drawn inputs.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the score and every trial to this file.",
)
def faults_command(
    slugs: tuple[str, ...],
    components: tuple[str, ...],
    everything: bool,
    workers: int,
    seed: int,
    json_file: Path | None,
) -> None:
    """Score the suite itself: plant the faults SLUGS (all by default) and see which it kills.

    Exit code 0: every fault is killed by its own clause and trips none that it cannot reach.
    """
    with usage():
        chosen = kills.choose(slugs, components)
    if not chosen:
        raise Usage("No fault is left: the named faults are not of the named components.")
    with usage(), opened(json_file, '{"format"') as file:
        found = _scored(chosen, everything, workers, seed)
        if file:
            json.dump(found.as_dict(), file)
    kills.show(Console(), found)
    sys.exit(int(not found.perfect))


def _scored(chosen: list[str], everything: bool, workers: int, seed: int) -> Score:
    with progress() as bar:
        task = bar.add_task("faults", total=len(chosen))
        return score(
            chosen,
            everything=everything,
            seed=seed,
            workers=workers,
            listener=lambda fault: bar.advance(task),
        )
