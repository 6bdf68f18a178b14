"""What a command writes besides its text: files that are never overwritten by mistake, progress."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import Progress


class Occupied(Exception):
    """The file cannot be written, or holds what is not ours; it was left as it is."""


@contextmanager
def opened(path: Path | None, beginning: str) -> Iterator[TextIO | None]:
    """Open `path` for writing; None for no path.

    A file that is there is replaced only when it starts with `beginning`, as ours do. Raises
    :class:`Occupied`, with the reason, otherwise.
    """
    if path is None:
        yield None
        return
    try:
        if path.exists() and not _ours(path, beginning.encode()):
            raise Occupied(
                f"{path} exists and was not written by this command; it was left as it is. "
                f"Name another file."
            )
        file = path.open("w", encoding="utf-8")
    except OSError as failure:
        raise Occupied(f"{path} cannot be written: {failure.strerror}.") from failure
    with file:
        yield file


def _ours(path: Path, beginning: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(beginning)) in (beginning, b"")


def progress() -> Progress:
    """Return a progress bar that shows on a terminal alone, and leaves nothing behind."""
    return Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
