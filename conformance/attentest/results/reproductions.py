"""Reproductions in files of their own: one for each cause, each of which runs without the suite."""

from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

from attentest.results.causes import Cause
from attentest.results.output import Occupied, create
from attentest_spec.clauses import clauses


def write(causes: Iterable[Cause], folder: Path) -> dict[tuple[str, str], Path]:
    """Write the reproduction of each cause into `folder`; return the files.

    They are named by the backend and the clause at the head of the cause. A file that is there
    stays as it is, and the new one gets a number. A cause whose example cannot be written as code
    has none. Raises Occupied where the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise Occupied(f"{folder} cannot be made: {failure.strerror}.") from failure
    written = {}
    for cause in causes:
        if content := text(cause):
            key = cause.head.backend, cause.head.clause
            written[key] = _created(folder, cause, content)
    return written


def text(cause: Cause) -> str:
    """Return the file: what is wrong as comments, then the code; "" where it is not possible."""
    example = cause.head.counterexample
    if example is None or "\n" not in example.code or cause.head.clause not in clauses():
        return ""
    clause = clauses()[cause.head.clause]
    comments = [
        *filter(None, [cause.words and f"{cause.file}:{cause.line}  {cause.words}"]),
        cause.text,
        f"{clause.slug}: {clause.text}",
        cause.head.finding,
        *(["computed:", *example.actual.split("\n")] if example.actual else ()),
        *(["expected:", *example.expected.split("\n")] if example.expected else ()),
    ]
    rows = (f"# {row}".rstrip() for one in comments for row in one.split("\n"))
    return "\n".join([*rows, "", example.code, ""])


def _created(folder: Path, cause: Cause, content: str) -> Path:
    for path in _names(folder, cause):
        try:
            create(path, content.encode())
        except Occupied:
            if path.exists():
                continue
            raise
        return path
    raise AssertionError("there is always another name")


def _names(folder: Path, cause: Cause) -> Iterator[Path]:
    stem = cause.head.clause.replace(".", "-")
    yield folder / f"{stem}.py"
    yield from (folder / f"{stem}-{number}.py" for number in count(2))
