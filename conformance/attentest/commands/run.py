"""`attentest run`: the matrix."""

import random
import sys
from pathlib import Path
from typing import TextIO

import click
from rich.console import Console
from rich.progress import Progress, TaskID

from attentest import matrix, stream
from attentest.commands.usage import Usage, usage
from attentest.outcome import Verdict
from attentest.output import opened, progress
from attentest.plan import Plan, select
from attentest.run import Judged, Listener, run
from attentest_spec import UnknownName, registry
from attentest_spec.precision import PRECISIONS


@click.command("run")
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
    with usage():
        targets = _targets(backends)
        chosen = select(components, slugs, precision=dtype)
    if not chosen:
        raise Usage("No clause is left: the named clauses are not about the named components.")
    seed = random.SystemRandom().randrange(1, 2**31) if fresh else seed
    plan = Plan(chosen, dtype, device, seed, effort, not no_shrink, timeout)
    console = Console()
    if seed:
        console.print(f"seed {seed} (replay with --seed {seed})")
    with usage(), opened(json_file, '{"type": "header"') as file:
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
