"""Shows that verdicts do not depend on the seed: run `python stability.py --seeds 50`.

Judges every clause on every installed backend (or those named) with fresh seeds and prints each
verdict that is not the one of the default seed. Exit code 1 when there is one.
"""

import random
import sys

import click
from rich.console import Console
from rich.progress import track

from attentest.judging.run import run
from attentest.results.plan import Plan, select
from attentest.results.run import Judged
from attentest_spec import registry


def statuses(results: list[Judged]) -> dict[tuple[str, str], str]:
    """Return the status of every backend and clause."""
    return {(one.target, v.clause): v.status for one in results for v in one.verdicts}


@click.command()
@click.argument("backends", nargs=-1)
@click.option("--seeds", default=50, show_default=True, help="How many fresh seeds.")
@click.option("--first", default=0, help="First seed (0 draws one).")
def main(backends: tuple[str, ...], seeds: int, first: int) -> None:
    """Judge with many seeds and print what differs from the default one."""
    targets = list(backends) or registry.installed()
    slugs = select()
    start = first or random.SystemRandom().randrange(1, 2**31)
    base = statuses(run(targets, Plan(slugs)))
    console = Console()
    console.print(f"{len(base)} verdicts, seeds {start} to {start + seeds - 1}")
    changed = 0
    for seed in track(
        range(start, start + seeds), description="seeds", console=Console(stderr=True)
    ):
        for pair, status in statuses(run(targets, Plan(slugs, seed=seed))).items():
            if status != base[pair]:
                changed += 1
                console.print(f"seed {seed}: {pair[0]} {pair[1]}: {base[pair]} -> {status}")
    console.print(
        f"{changed} of {len(base) * seeds} verdicts differ from those of the default seed"
    )
    sys.exit(int(changed > 0))


if __name__ == "__main__":
    main()
