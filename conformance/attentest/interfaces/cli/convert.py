"""`attentest convert`: the checkpoint of one backend becomes that of another."""

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from attentest.harness.errors import BadCheckpoint, NotConvertible, Unavailable
from attentest.harness.process import Isolation
from attentest.interfaces.cli import options
from attentest.interfaces.cli.usage import Usage, refuse_unknown, usage
from attentest.results.output import create, vacant
from attentest.studies.convert import SIZES
from attentest.studies.convert.isolated import Report, convert_file
from attentest_spec.names import require
from attentest_spec.registry import LoadFailure

_IN = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUT = click.Path(dir_okay=False, path_type=Path)


@click.command("convert")
@click.argument("checkpoint", metavar="IN", type=_IN)
@click.argument("out", metavar="OUT", type=_OUT)
@click.option("--from", "source", required=True, help="The backend whose checkpoint IN is.")
@click.option("--to", "target", required=True, help="The backend that OUT is for.")
@click.option(
    "--sizes", default="", help="Sizes that nothing in IN shows, such as heads=8,max_length=512."
)
@click.option("--approximate", is_flag=True, help="Carry what has a place, and say what has none.")
@options.isolated
def convert_command(
    checkpoint: Path,
    out: Path,
    source: str,
    target: str,
    sizes: str,
    approximate: bool,
    isolation: Isolation,
) -> None:
    """Carry the weights of the safetensors file IN from one backend over to another, as OUT.

    Everything goes through the canonical names, bit-exact, and what cannot be carried exactly is
    refused with a list. A backend is a name (see `attentest list backends`), FILE.py,
    FILE.py:OBJECT or MODULE:OBJECT; its code runs in a process of its own. OUT is never
    overwritten.

    Exit code 0: OUT was written; 1: refused, or the process did not finish; nothing was written; 2:
    usage; 3: a backend could not be loaded.
    """
    console = Console()
    try:
        with usage(), Console(stderr=True).status(f"carrying over {escape(checkpoint.name)}"):
            vacant(out)
            refuse_unknown([source, target])
            content, report = convert_file(
                checkpoint, source, target, isolation, sizes=_sizes(sizes), approximate=approximate
            )
            create(out, content)
    except BadCheckpoint as wrong:
        raise Usage(str(wrong)) from wrong
    except (LoadFailure, NotConvertible) as failure:
        console.print(Text(str(failure)), soft_wrap=True)
        sys.exit(3 if isinstance(failure, LoadFailure) else 1)
    except Unavailable as failure:
        console.print(Text(f"{checkpoint} was not converted: {failure}."), soft_wrap=True)
        sys.exit(1)
    for line in _story(report, out):
        console.print(Text(line), soft_wrap=True)


def _story(report: Report, out: Path) -> list[str]:
    """Return what was done, in sentences."""
    how = "approximately" if report.lost else "bit for bit"
    return [
        f"{out} was written: {report.entries} entries, carried {how}.",
        *(f"Not exact: {one}." for one in report.lost),
        *(f"For your information: {one}." for one in report.notes),
        report.effect,
    ]


def _sizes(text: str) -> dict[str, int]:
    """Read `heads=8,d_model=512`."""
    found = {}
    for word in filter(None, text.split(",")):
        name, _, value = word.partition("=")
        if not value.strip().isdigit():
            raise Usage(f"--sizes takes NAME=NUMBER, joined by commas, and {word!r} is not.")
        found[require("size", name.strip(), SIZES)] = int(value)
    return found
