"""`attentest run`: the matrix."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from attentest.interfaces.cli.judging import Judging, judging
from attentest.interfaces.cli.usage import Usage, refuse_unknown, usage
from attentest.results import expected_failures, stream
from attentest.results.expected_failures import Deviation
from attentest.results.run import Judged
from attentest.views import matrix
from attentest_spec import registry


@click.command("run")
@click.argument("backends", nargs=-1)
@click.option("--component", "components", multiple=True, help="Judge this component alone.")
@click.option("--workers", default=0, help="Backends judged at once (default: one per core).")
@click.option(
    "--deviations",
    "deviation_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Let pass what this file declares to be known, and fail where it is no longer so.",
)
@judging
def run_command(
    backends: tuple[str, ...],
    components: tuple[str, ...],
    workers: int,
    deviation_file: Path | None,
    judging: Judging,
) -> None:
    """Judge BACKENDS (all that are installed by default) and print the matrix.

    Those whose library is not installed are listed below it, unless they are named.

    A backend is a name (see `attentest list backends`), FILE.py, FILE.py:OBJECT, MODULE:OBJECT or
    stdio:COMMAND. Exit code 0: all conform; 1: one does not; 2: usage; 3: one could not be loaded.
    """
    with usage():
        targets = _targets(backends)
        plan = judging.plan(components)
        known = _known(deviation_file, targets)
    console = Console()
    left_out = {} if backends else registry.not_installed()
    results = judging.carried_out(console, targets, plan, workers, left_out, known)
    matrix.show(console, results, plan, left_out)
    settled, refuted = _settled(results, known)
    for line in refuted:
        console.print(Text(line), soft_wrap=True)
    sys.exit(max(stream.exit_code(settled, plan), int(bool(refuted))))


def _known(file: Path | None, targets: Sequence[str]) -> tuple[Deviation, ...]:
    """Read the deviation file, where one is named."""
    try:
        return expected_failures.read(file, {*targets, *registry.names()}) if file else ()
    except expected_failures.Misdeclared as wrong:
        raise Usage(str(wrong)) from wrong


def _settled(
    results: Sequence[Judged], known: Sequence[Deviation]
) -> tuple[list[Judged], list[str]]:
    """Return the results as they count where `known` is declared, and what refutes an entry."""
    settled, refuted = [], []
    for result in results:
        pairs = [expected_failures.settled(known, verdict) for verdict in result.verdicts]
        settled.append(replace(result, verdicts=[verdict for verdict, _ in pairs]))
        refuted += [problem for _, problem in pairs if problem]
    return settled, refuted


def _targets(named: tuple[str, ...]) -> list[str]:
    """Return the targets to judge, each once; names are known, the rest is left to the worker."""
    refuse_unknown(named)
    targets = list(dict.fromkeys(named or registry.installed()))
    if not targets:
        raise Usage("No backend is installed. Install one, such as ./implementations/NAME.")
    return targets
