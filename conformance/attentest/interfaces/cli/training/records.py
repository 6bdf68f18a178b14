"""Trainings whose records are kept in a folder: its option, and their progress."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from attentest.interfaces.cli.options import Decorator
from attentest.studies.cluster import NoScheduler
from attentest.studies.sweep.engine import Listener
from attentest.studies.sweep.record import Record
from attentest.views.terminal import progress


def records_folder(default: str) -> Decorator:
    """Return the option `--folder`."""
    option: Callable[[Callable[..., None]], Callable[..., None]] = click.option(
        "--folder",
        type=click.Path(file_okay=False, path_type=Path),
        default=default,
        show_default=True,
        help="Keep a record of every training here; an interrupted command goes on.",
    )
    return option


@contextmanager
def recorded(total: int, folder: Path) -> Iterator[Listener]:
    """Yield what shows progress; an interruption says how much is stored.

    Raises NoScheduler, which says so as well, for a scheduler that is lost.
    """
    stored = 0
    with progress() as bar:
        task = bar.add_task("trainings", total=total)

        def ended(record: Record) -> None:
            nonlocal stored
            stored += not record.reason
            bar.update(task, advance=1)

        try:
            yield ended
        except (KeyboardInterrupt, NoScheduler) as failure:
            bar.stop()
            kept = (
                f"{stored} of {total} trainings are in {folder}. The same command goes on with "
                f"the others."
            )
            if isinstance(failure, NoScheduler):
                raise NoScheduler(f"{failure} {kept}") from failure
            click.echo(f"Interrupted: {kept}", err=True)
            sys.exit(130)
