"""The files that a command writes besides its text: looked at before anything is begun."""

from pathlib import Path

import click

from attentest.interfaces.cli.usage import Usage
from attentest.results import files
from attentest.results.optional import Missing, needed
from attentest.results.output import replaceable, vacant
from attentest.views.plots.drawing import KINDS

FILE = click.Path(dir_okay=False, path_type=Path)


def checked(kind: str, json_file: Path | None, plot: Path | None) -> None:
    """Refuse what could not be written at the end: a result of `kind`, and a plot.

    Raises Usage, and Occupied as writing them would.
    """
    distinct(json=json_file, plot=plot)
    if json_file is not None:
        replaceable(json_file, files.beginning(kind))
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
