"""`attentest compare`: backends side by side."""

import sys

import click
from rich.console import Console

from attentest.commands.comparing import asked_for, given_input, given_limit
from attentest.commands.usage import Usage
from attentest.comparison import BadExample
from attentest.comparison.compare import side_by_side, unlike
from attentest.comparison.view import show
from attentest.comparison.worker import Apart

WORKERS = 2
"""How many backends are asked at a time."""


@click.command("compare")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET TARGET ..")
@given_input
@given_limit
def compare_command(targets: tuple[str, ...], given: str, timeout: float) -> None:
    """Set the choices and the numbers of two backends or more side by side.

    Each is compared with the first. A TARGET is a name (see `attentest list backends`), FILE.py,
    FILE.py:OBJECT or MODULE:OBJECT. Exit code 0: all are equal, or their choices explain why they
    are not; 1: something is not explained, or a backend gave no numbers; 2: usage; 3: one could not
    be loaded.
    """
    if len(targets) < 2:
        raise Usage("One backend cannot be compared; name two or more.")
    example = asked_for(targets, given)
    participants = {
        label: Apart(target, timeout)
        for label, target in zip(unlike(list(targets)), targets, strict=True)
    }
    try:
        found = side_by_side(participants, example, WORKERS)
    except BadExample as wrong:
        raise Usage(str(wrong)) from wrong
    show(Console(), found)
    if not all(one.loaded for one in found.failures):
        sys.exit(3)
    sys.exit(int(not found.explained))
