"""`attentest run`: the matrix."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from attentest.interfaces.cli import options
from attentest.interfaces.cli.judging import Judging, judging
from attentest.interfaces.cli.usage import Usage, refuse_unknown, usage
from attentest.results import expected_failures
from attentest.results.expected_failures import ExpectedFailure
from attentest.results.optional import Missing
from attentest.studies.cluster import NoScheduler
from attentest.views import matrix
from attentest_spec import registry


@click.command("run")
@click.argument("backends", nargs=-1)
@options.component
@options.workers
@options.scheduler
@click.option(
    "--deviations",
    "expected_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file with expected failures: they pass, and fail where they no longer occur.",
)
@click.option("--all", "every", is_flag=True, help="A row for every clause and choice.")
@judging
def run_command(
    backends: tuple[str, ...],
    components: tuple[str, ...],
    workers: int,
    scheduler: str,
    expected_file: Path | None,
    every: bool,
    judging: Judging,
) -> None:
    """Judge BACKENDS (all that are installed by default) and print the matrix.

    Those whose library is not installed are listed below it, unless they are named.

    A backend is a name (see `attentest list backends`), FILE.py, FILE.py:OBJECT, MODULE:OBJECT,
    stdio:COMMAND or "paper NAME=OPTION ..". Exit code 0: all conform; 1: one does not; 2: usage; 3:
    one could not be loaded.
    """
    with usage():
        targets = _targets(backends)
        plan = judging.plan(components)
        known = _known(expected_file, targets)
    console = Console()
    not_installed = {} if backends else registry.not_installed()
    try:
        found = judging.carried_out(
            console, targets, plan, workers, not_installed, known, scheduler
        )
    except (Missing, NoScheduler) as failure:
        raise Usage(str(failure)) from failure
    screen = judging.screen(console, found)
    if not judging.annotated(console, found):
        matrix.show(console, found.focused, screen, every=every)
    as_expected, problems = expected_failures.applied(known, found)
    for problem in problems:
        console.print(Text(problem), soft_wrap=True)
    sys.exit(max(as_expected.exit_code, int(bool(problems))))


def _known(file: Path | None, targets: Sequence[str]) -> tuple[ExpectedFailure, ...]:
    """Read the expected failures, where a file is named."""
    try:
        return expected_failures.read(file, {*targets, *registry.names()}) if file else ()
    except expected_failures.UnusableFile as wrong:
        raise Usage(str(wrong)) from wrong


def _targets(named: tuple[str, ...]) -> list[str]:
    """Return the targets to judge, each once; names are known, the rest is left to the worker."""
    refuse_unknown(named)
    targets = list(dict.fromkeys(named or registry.installed()))
    if not targets:
        raise Usage("No backend is installed. Install one, such as ./implementations/NAME.")
    return targets
