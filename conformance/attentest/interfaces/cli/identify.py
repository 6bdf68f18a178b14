"""`attentest identify`: which option of every choice the numbers show."""

import sys

import click
from rich.console import Console
from rich.text import Text

from attentest.analysis.identify.finding import UNDETERMINED
from attentest.harness.errors import Unavailable
from attentest.harness.process import Isolation
from attentest.interfaces.cli import options
from attentest.interfaces.cli.usage import refuse_unknown, usage
from attentest.studies.identification import identified
from attentest.views.identification import show
from attentest_spec import COMPONENTS
from attentest_spec.names import require
from attentest_spec.precision import PRECISIONS
from attentest_spec.registry import LoadFailure


@click.command("identify")
@click.argument("target")
@options.component
@click.option("--as", "component", default="", help="The component that it is.")
@options.dtype(otherwise="the finest that it has")
@click.option("--device", default="cpu", show_default=True, help="Where the backend computes.")
@options.isolated
def identify_command(
    target: str,
    components: tuple[str, ...],
    component: str,
    dtype: str,
    device: str,
    isolation: Isolation,
) -> None:
    """Measure which option of every choice TARGET uses, whatever it declares.

    A TARGET is a name (see `attentest list backends`), FILE.py, FILE.py:OBJECT, MODULE:OBJECT,
    stdio:COMMAND or "paper NAME=OPTION ..". Exit code 0: nothing contradicts what is declared; 1:
    something does, no options give the numbers, or its process did not finish; 2: usage; 3: it
    could not be loaded.
    """
    with usage():
        _known(target, (*components, *filter(None, [component])), dtype)
    console = Console()
    try:
        found = identified(
            target,
            components,
            precision=dtype,
            device=device,
            isolation=isolation,
            reading={"component": component} if component else None,
        )
    except (LoadFailure, Unavailable) as failure:
        console.print(Text(str(failure)), soft_wrap=True)
        sys.exit(3 if isinstance(failure, LoadFailure) else 1)
    show(console, target, found)
    wrong = [not one.agrees or one.status == UNDETERMINED for one in found.values()]
    sys.exit(int(any(wrong)))


def _known(target: str, components: tuple[str, ...], dtype: str) -> None:
    """Refuse a name that is none before a process is started for it."""
    for name in components:
        require("component", name, COMPONENTS)
    if dtype:
        require("precision", dtype, PRECISIONS)
    refuse_unknown([target])
