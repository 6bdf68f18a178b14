"""The files that a command writes besides its text: looked at before anything is begun."""

from pathlib import Path

import click

from attentest import results
from attentest.commands.usage import Usage
from attentest.drawing import KINDS
from attentest.extra import Missing, needed
from attentest.output import replaceable, vacant

FILE = click.Path(dir_okay=False, path_type=Path)


def checked(kind: str, json_file: Path | None, plot: Path | None) -> None:
    """Refuse what could not be written at the end: a result of `kind`, and a plot.

    Raises Usage, and Occupied as writing them would.
    """
    distinct(json=json_file, plot=plot)
    if json_file is not None:
        replaceable(json_file, results.beginning(kind))
    if plot is not None:
        _drawable(plot)


def distinct(**files: Path | None) -> None:
    """Refuse one file under the names of two options."""
    named: dict[Path, str] = {}
    for option, path in files.items():
        if path is not None and (first := named.setdefault(path.resolve(), option)) != option:
            raise Usage(f"--{first} and --{option} both name {path}. Name two files.")


def _drawable(plot: Path) -> None:
    if plot.suffix[1:] not in KINDS:
        raise Usage(f"A plot is FILE.svg or FILE.png; {plot} is neither.")
    vacant(plot)
    try:
        needed("matplotlib")
    except Missing as missing:
        raise Usage(str(missing)) from missing
