"""`attentest compare`: the choices and numbers of several backends."""

import json
import sys
from pathlib import Path

import click
from rich.console import Console

from attentest.harness.process import Isolation
from attentest.interfaces.cli import options
from attentest.interfaces.cli.comparing import asked_for, given_input
from attentest.interfaces.cli.reporting import page_file, reporting
from attentest.interfaces.cli.usage import Usage, exit_code, late
from attentest.interfaces.cli.written import distinct
from attentest.results import files
from attentest.results.output import replacing
from attentest.studies.comparison import BadExample, Comparison, Example
from attentest.studies.comparison.compare import called, side_by_side
from attentest.studies.comparison.participant import remote
from attentest.views.comparison import show
from attentest.views.html.material import Material
from attentest.views.html.page import page

KIND = "comparison"

WORKERS = 2
"""Number of backends that are asked at a time."""


@click.command("compare")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET TARGET ..")
@given_input
@options.isolated
@options.json_file
@options.html_file
def compare_command(
    targets: tuple[str, ...],
    given: str,
    isolation: Isolation,
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Compare the choices and the numbers of two or more backends.

    Each is compared with the first step by step, and every pair is explained. A TARGET is a name
    (see `attentest list backends`), FILE.py, FILE.py:OBJECT, MODULE:OBJECT, stdio:COMMAND or
    "paper NAME=OPTION ..". Exit code 0: all are equal, or their choices explain why they are not;
    1: something is not explained, or a backend gave no numbers; 2: usage; 3: one could not be
    loaded.
    """
    if len(targets) < 2:
        raise Usage("One backend cannot be compared; name two or more.")
    distinct(json=json_file, html=html_file)
    example = asked_for(targets, given)
    begun = replacing(json_file, files.beginning(KIND))
    with reporting(), late(), begun as file, late(), page_file(html_file) as report:
        found = _compared(targets, example, isolation)
        content_text = files.text(KIND, found.as_dict())
        if file:
            file.write(content_text)
        if report:
            content = {**json.loads(content_text), "name": "this comparison"}
            report.write(page(Material(comparisons=(content,))))
    show(Console(), found)
    sys.exit(exit_code(found.failures, well=found.explained))


def _compared(targets: tuple[str, ...], example: Example, isolation: Isolation) -> Comparison:
    participants = {
        label: remote(target, isolation)
        for label, target in zip(called(targets), targets, strict=True)
    }
    try:
        return side_by_side(participants, example, WORKERS, isolation.stop)
    except BadExample as wrong:
        raise Usage(str(wrong)) from wrong
