"""The `attentest` command."""

import json
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click
from rich.console import Console
from rich.progress import Progress, TaskID

from attentest import __version__, kills, matrix, stream
from attentest.describe import described, listed
from attentest.outcome import Verdict
from attentest.output import Occupied, opened, progress
from attentest.plan import Plan, select
from attentest.run import Judged, Listener, run
from attentest.score import Score, score
from attentest_spec import UnknownName, registry
from attentest_spec.precision import PRECISIONS


class Usage(click.ClickException):
    """What was asked for cannot be done as asked; exit code 2."""

    exit_code = 2


@contextmanager
def _usage() -> Iterator[None]:
    """Turn an unknown name or a file that cannot be written into one line and exit code 2."""
    try:
        yield
    except (UnknownName, Occupied) as wrong:
        raise Usage(str(wrong)) from wrong


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="attentest")
def main() -> None:
    """Tell whether a Transformer implementation is right, and how it differs from others."""


@main.command("run")
@click.argument("backends", nargs=-1)
@click.option("--component", "components", multiple=True, help="Judge this component alone.")
@click.option("--clause", "slugs", multiple=True, help="Judge this clause alone.")
@click.option(
    "--dtype", default="float64", show_default=True, help=f"One of {', '.join(PRECISIONS)}."
)
@click.option("--device", default="cpu", show_default=True, help="Where the backend computes.")
@click.option("--workers", default=0, help="Backends judged at once (default: one per core).")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds one check may take.")
@click.option("--effort", default=1.0, show_default=True, help="Factor on the number of examples.")
@click.option("--seed", default=0, show_default=True, help="Seed of all drawn inputs.")
@click.option("--random", "fresh", is_flag=True, help="Draw a fresh seed and print it.")
@click.option("--no-shrink", is_flag=True, help="Do not look for the smallest witness.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the stream of verdicts to this file.",
)
def run_command(
    backends: tuple[str, ...],
    components: tuple[str, ...],
    slugs: tuple[str, ...],
    dtype: str,
    device: str,
    workers: int,
    timeout: float,
    effort: float,
    seed: int,
    fresh: bool,
    no_shrink: bool,
    json_file: Path | None,
) -> None:
    """Judge BACKENDS (all that are installed by default) and print the matrix.

    A backend is a name (see `attentest list backends`), FILE.py, FILE.py:OBJECT or MODULE:OBJECT.
    Exit code 0: all conform; 1: one does not; 2: usage; 3: one could not be loaded.
    """
    with _usage():
        targets = _targets(backends)
        chosen = select(components, slugs, precision=dtype)
    if not chosen:
        raise Usage("No clause is left: the named clauses are not about the named components.")
    seed = random.SystemRandom().randrange(1, 2**31) if fresh else seed
    plan = Plan(chosen, dtype, device, seed, effort, not no_shrink, timeout)
    console = Console()
    if seed:
        console.print(f"seed {seed} (replay with --seed {seed})")
    with _usage(), opened(json_file, '{"type": "header"') as file:
        results = _watched(targets, plan, workers, file)
    matrix.show(console, results, plan)
    sys.exit(stream.exit_code(results, plan))


def _targets(named: tuple[str, ...]) -> list[str]:
    """Return the targets to judge, each once; names are known, the rest is left to the worker."""
    known = registry.names()
    for name in named:
        if ":" not in name and not name.endswith(".py") and name not in known:
            raise UnknownName("backend", name, known)
    targets = list(dict.fromkeys(named or known))
    if not targets:
        raise Usage("No backend is installed. Install one, such as ./implementations/NAME.")
    return targets


def _watched(targets: list[str], plan: Plan, workers: int, file: TextIO | None) -> list[Judged]:
    """Run the plan with a progress bar on a terminal, writing the stream as verdicts come."""
    writer = stream.Writer(file, plan) if file else None
    with progress() as bar:
        tasks = {target: bar.add_task(target, total=len(plan.clauses)) for target in targets}
        results = run(targets, plan, workers=workers, listener=_listener(bar, tasks, writer))
    if writer:
        writer.close(results, plan)
    return results


def _listener(bar: Progress, tasks: dict[str, TaskID], writer: "stream.Writer | None") -> Listener:
    def listen(judged: Judged, verdict: Verdict | None) -> None:
        if verdict is not None:
            bar.advance(tasks[judged.target])
        if writer:
            writer(judged, verdict)

    return listen


KINDS: dict[str, Callable[[], Iterator[tuple[str, str]]]] = listed()


@main.command("faults")
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
    with _usage():
        chosen = kills.choose(slugs, components)
    if not chosen:
        raise Usage("No fault is left: the named faults are not of the named components.")
    with _usage(), opened(json_file, '{"format"') as file:
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


@main.command("list")
@click.argument("kind", type=click.Choice(sorted(KINDS)))
def list_command(kind: str) -> None:
    """Print one item of KIND a line, its name first."""
    rows = list(KINDS[kind]())
    width = max((len(name) for name, _ in rows), default=0)
    for name, told in rows:
        click.echo(f"{name:<{width}}  {told}".rstrip())


@main.command("explain")
@click.argument("name")
def explain_command(name: str) -> None:
    """Explain a clause, a choice, a component, a backend or a fault by its NAME."""
    with _usage():
        click.echo(described(name))
