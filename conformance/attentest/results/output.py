"""What a command writes besides its text: files that are never overwritten by mistake, progress."""

import errno
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
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
        file = replaceable(path, beginning).open("w", encoding="utf-8")
    except OSError as failure:
        raise Occupied(f"{path} cannot be written: {failure.strerror}.") from failure
    with file:
        yield file


@contextmanager
def replacing(path: Path | None, beginning: str) -> Iterator[TextIO | None]:
    """Collect what is to stand in `path`, and write it when all is there; None for no path.

    Where the work before ends in an error, what was there is left as it is. Raises
    :class:`Occupied` as :func:`opened` does, and before the work.
    """
    if path is None:
        yield None
        return
    target = replaceable(path, beginning)
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise Occupied(f"{path} cannot be written: {os.strerror(errno.EACCES)}.")
    text = io.StringIO()
    yield text
    with opened(path, beginning) as file:
        assert file is not None  # a path was given
        file.write(text.getvalue())


def replaceable(path: Path, beginning: str) -> Path:
    """Return `path` when nothing is there, or what starts with `beginning`, as our files do.

    Raises :class:`Occupied` when something else is, or there is no folder for it.
    """
    try:
        if path.exists() and not _ours(path, beginning.encode()):
            raise Occupied(
                f"{path} exists and was not written by this command; it was left as it is. "
                f"Name another file."
            )
    except OSError as failure:
        raise Occupied(f"{path} cannot be written: {failure.strerror}.") from failure
    return _placed(path)


def vacant(path: Path) -> Path:
    """Return `path` when nothing is there; raise :class:`Occupied` as :func:`replaceable` does."""
    if path.exists() or path.is_symlink():
        raise Occupied(f"{path} exists and was left as it is. Name another file.")
    return _placed(path)


def _placed(path: Path) -> Path:
    if not path.parent.is_dir():
        raise Occupied(f"{path} cannot be written: there is no folder {path.parent}.")
    return path


def create(path: Path, content: bytes) -> None:
    """Write a new file as a whole; raise :class:`Occupied` where something is or it cannot be.

    It appears under its name when it is complete, and takes the place of nothing.
    """
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            complete = Path(folder) / "complete"
            complete.write_bytes(content)
            os.link(complete, path)
    except FileExistsError:
        vacant(path)
    except OSError as failure:
        raise Occupied(f"{path} cannot be written: {failure.strerror}.") from failure


def _ours(path: Path, beginning: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(beginning)) in (beginning, b"")


def progress() -> "Progress":
    """Return a progress bar that shows on a terminal alone, and leaves nothing behind."""
    from rich.console import Console  # not needed in the processes of backends, which load faster
    from rich.progress import Progress

    return Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
