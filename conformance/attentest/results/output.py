"""Writing files without overwriting anything that is not ours."""

import errno
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TextIO


class Occupied(Exception):
    """The file cannot be written, or holds what is not ours; it was left as it is."""


class Unwritten(Occupied):
    """Writing failed on the way, as on a full disk; what was to be written is not complete."""


class Writable(Protocol):
    """A text file, as far as writing needs it."""

    def write(self, text: str, /) -> int:
        """Write `text`; return its length."""

    def flush(self) -> None:
        """Hand on what was written."""


class _Output:
    """A text file that takes everything, and raises what went wrong when it is closed.

    So a full disk costs the file, and not the verdicts that come after it.
    """

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path = path
        self._file = file
        self._failure: OSError | None = None

    def write(self, text: str, /) -> int:
        """Write `text`, as long as nothing went wrong."""
        self._try(lambda: self._file.write(text))
        return len(text)

    def flush(self) -> None:
        """Hand on what was written, as long as nothing went wrong."""
        self._try(self._file.flush)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Close the file; raise :class:`Unwritten` where something went wrong, and nothing else."""
        try:
            self._file.close()
        except OSError as failure:
            self._failure = self._failure or failure
        if self._failure and raised is None:
            raise unwritten(self._path, self._failure) from self._failure

    def _try(self, action: Callable[[], object]) -> None:
        try:
            if self._failure is None:
                action()
        except OSError as failure:
            self._failure = failure


def unwritten(path: Path, failure: OSError) -> Unwritten:
    """Return what to raise where writing `path` ended in `failure`."""
    return Unwritten(f"{path} could not be written: {failure.strerror}. It is not complete.")


@contextmanager
def opened(path: Path | None, beginning: str) -> Iterator[Writable | None]:
    """Open `path` for writing; None for no path.

    A file that is there is replaced only when it starts with `beginning`, as ours do. Raises
    :class:`Occupied`, with the reason, otherwise, and :class:`Unwritten` at the end where it could
    be opened and not be written.
    """
    if path is None:
        yield None
        return
    try:
        file = replaceable(path, beginning).open("w", encoding="utf-8")
    except OSError as failure:
        raise Occupied(f"{path} cannot be written: {failure.strerror}.") from failure
    with _Output(path, file) as output:
        yield output


@contextmanager
def replacing(path: Path | None, beginning: str) -> Iterator[Writable | None]:
    """Collect the content of `path`, and write it when it is complete; None for no path.

    Where the work before ends in an error, the file is left as it was. Raises :class:`Occupied`
    as :func:`opened` does and before the work, and :class:`Unwritten` after it.
    """
    if path is None:
        yield None
        return
    target = replaceable(path, beginning)
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise Occupied(f"{path} cannot be written: {os.strerror(errno.EACCES)}.")
    text = io.StringIO()
    yield text
    try:
        with opened(path, beginning) as file:
            assert file is not None  # a path was given
            file.write(text.getvalue())
    except Occupied as failure:  # it could be written before the work
        raise Unwritten(str(failure)) from failure


def replaceable(path: Path, beginning: str) -> Path:
    """Return `path` when nothing is there, or what starts with `beginning`, as our files do.

    Raises :class:`Occupied` when something else is, or there is no folder for it.
    """
    try:
        # A device or a pipe, such as /dev/stdout, holds nothing that could be lost.
        if path.is_file() and not _ours(path, beginning.encode()):
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
        text = f"{path} could not be written: {failure.strerror}. Nothing was written."
        raise Unwritten(text) from failure


def _ours(path: Path, beginning: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(beginning)) in (beginning, b"")
