"""`attentest trace`: one backend step by step, compared with the reference."""

import sys
from pathlib import Path

import click
from rich.console import Console

from attentest.harness.errors import Unavailable
from attentest.harness.process import Isolation
from attentest.interfaces.cli import options
from attentest.interfaces.cli.comparing import asked_for, given_input
from attentest.interfaces.cli.usage import Usage, late, usage
from attentest.results import files
from attentest.results.output import replacing
from attentest.studies.comparison import BadExample
from attentest.studies.comparison.participant import remote
from attentest.studies.comparison.tracing import trace
from attentest.views.trace import show_trace
from attentest_spec.registry import LoadFailure

KIND = "trace"


@click.command("trace")
@click.argument("target")
@given_input
@click.option("--only", default="", help="Show the steps whose names begin so.")
@options.isolated
@options.json_file
def trace_command(
    target: str, given: str, only: str, isolation: Isolation, json_file: Path | None
) -> None:
    """Follow TARGET step by step, with shapes and values, compared with the reference.

    A TARGET is a name (see `attentest list backends`), FILE.py, FILE.py:OBJECT, MODULE:OBJECT,
    stdio:COMMAND or "paper NAME=OPTION ..". Exit code 0: every step equals the reference under the
    same choices; 1: one is not, or the backend gave no numbers; 2: usage; 3: it could not be
    loaded.
    """
    example = asked_for([target], given)
    console = Console()
    try:
        with usage(), late(), replacing(json_file, files.beginning(KIND)) as file:
            found = trace(target, remote(target, isolation), example)
            if file:
                file.write(files.text(KIND, found.as_dict()))
    except BadExample as wrong:
        raise Usage(str(wrong)) from wrong
    except (LoadFailure, Unavailable) as failure:
        console.print(f"{target} was not followed: {failure}", soft_wrap=True, markup=False)
        sys.exit(3 if isinstance(failure, LoadFailure) else 1)
    show_trace(console, found, only)
    sys.exit(int(bool(found.parting.step)))
