"""`attentest new`: the folder of a new implementation."""

from pathlib import Path

import click

from attentest.interfaces.cli.usage import Usage
from attentest.targets import scaffold


@click.command("new")
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    help="Write the folder NAME into this one (default: here).",
)
def new_command(name: str, into: Path) -> None:
    """Write the folder NAME: an implementation in which everything is still to be filled in.

    Its first run fails, and says what to write; nothing that exists is overwritten.
    """
    try:
        written = scaffold.write(name, into)
    except scaffold.Refused as refusal:
        raise Usage(str(refusal)) from refusal
    click.echo(f"{len(written)} files were written into {into / name}. Try:\n")
    for command in _next(name, into / name):
        click.echo(f"  {command}")


def _next(name: str, folder: Path) -> tuple[str, ...]:
    """Return the commands to type next; none of them needs an installation."""
    package = scaffold.package_of(name)
    return (
        f"cd {folder}",
        f"attentest run {package}.backend:backend --component attention",
        "pytest -m clause -x",
    )
