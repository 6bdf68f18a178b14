"""Errors of a command: requests that are invalid, in whole or in part, with exit status."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from attentest.results.output import Occupied, Unwritten
from attentest.studies.participants import Failure
from attentest.targets import paper
from attentest.targets.resolve import is_name
from attentest_spec import UnknownName, registry
from attentest_spec.names import require
from attentest_spec.registry import LoadFailure


class Usage(click.ClickException):
    """A request that cannot be met as it is; exit code 2."""

    exit_code = 2


@contextmanager
def usage() -> Iterator[None]:
    """Turn an unknown name or a file that cannot be written into one line and exit code 2."""
    try:
        yield
    except (UnknownName, Occupied) as wrong:
        raise Usage(str(wrong)) from wrong


@contextmanager
def late() -> Iterator[None]:
    """Let the command go on where a file could not be written, and refuse when it has ended.

    What was found is on the screen then, in spite of a full disk.
    """
    try:
        yield
    except Unwritten as failure:
        refusal = Usage(str(failure))

        def refuse() -> NoReturn:
            raise refusal

        click.get_current_context().call_on_close(refuse)


def refuse_unknown(targets: Iterable[str]) -> None:
    """Refuse names of no backend and no choice before a process is started for them.

    Raises UnknownName, and Usage for choices that cannot be built.
    """
    names = registry.names()
    for target in targets:
        if is_name(target):
            require("backend", target, names)
        elif paper.is_paper(target):
            try:
                paper.choices_of(target)
            except LoadFailure as wrong:
                raise Usage(str(wrong)) from wrong


def exit_code(failures: Iterable[Failure], *, well: bool) -> int:
    """Return 3 where a backend could not be loaded, else whether all went `well`: 0, or 1."""
    return 3 if not all(one.loaded for one in failures) else int(not well)
