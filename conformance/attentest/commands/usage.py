"""What is said of a command that cannot be carried out as asked."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from attentest.output import Occupied
from attentest_spec import UnknownName


class Usage(click.ClickException):
    """What was asked for cannot be done as asked; exit code 2."""

    exit_code = 2


@contextmanager
def usage() -> Iterator[None]:
    """Turn an unknown name or a file that cannot be written into one line and exit code 2."""
    try:
        yield
    except (UnknownName, Occupied) as wrong:
        raise Usage(str(wrong)) from wrong
