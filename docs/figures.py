"""Writes the matrix of a real run into README.md, and as a picture into the documentation.

Run by `tox -e readme`. First the matrix as it is printed by default: chapters with counts, and the
rows that need attention. Then that of `--all`, shortened to a few chapters, with the number of
omitted lines.
"""

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from markers import write_between
from rich.console import Console

from attentest.results import stream
from attentest.results.run import Run
from attentest.views.matrix import Matrix

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_ext"))

from matrix_picture import picture, words  # noqa: E402  # a module of _ext

README = DOCS.parent / "README.md"
INDEX = DOCS / "index.md"
PICTURE = DOCS / "pictures" / "matrix.svg"
SHOWN = ("attention", "layer_norm", "encoder")
PER_CHAPTER = 8
WIDTH = 100


def main() -> None:
    """Run, shorten, and write; nothing is written if an implementation does not conform."""
    script = Path(sys.executable).with_name("attentest")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.jsonl"
        ended = subprocess.run(
            [str(script), "run", "--json", str(file)],
            env={**os.environ, "COLUMNS": str(WIDTH)},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if ended.returncode:
            sys.exit(f"attentest run ended with {ended.returncode}; README.md is unchanged.")
        whole = io.StringIO()
        run = stream.read(file)
        Matrix(run, every=True).show(Console(file=whole, width=WIDTH))
    write_picture(run)
    shown = f"$ attentest run\n{essence(ended.stdout)}\n\n$ attentest run --all\n"
    write_between(README, "matrix", f"```text\n{shown}{shorten(whole.getvalue())}\n..\n```")


def write_picture(run: Run) -> None:
    """Write the picture of the matrix, and the first page's link to it with its words."""
    PICTURE.write_text(picture(run), encoding="utf-8")
    write_between(INDEX, "matrix", f"![{words(run)}](pictures/{PICTURE.name})")


def essence(printed: str) -> str:
    """Return the matrix and the closing sentences."""
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    closing = lines[len(lines) - lines[::-1].index("") :]
    return "\n".join([*lines[: lines.index("")], "", *closing])


def shorten(printed: str) -> str:
    """Return the head, some chapters and the scores of the matrix."""
    lines = [line.rstrip() for line in printed.splitlines()]
    return "\n".join(_chapters(lines[: lines.index("")]))


def _chapters(matrix: list[str]) -> Iterator[str]:
    """Yield the lines of the matrix; long chapters are cut and others replaced by a count."""
    count = omitted = 0
    chapter = ""
    for line in [*matrix, ""]:
        if line.startswith(" "):
            count += 1
            if chapter in SHOWN and count <= PER_CHAPTER:
                yield line
            else:
                omitted += 1
            continue
        chapter, count = line.partition(" ")[0], 0
        kept = chapter in SHOWN or line in (matrix[0], matrix[-1])
        if omitted and (kept or not line):
            yield f"  .. {omitted} more"
            omitted = 0
        if kept:
            yield line


if __name__ == "__main__":
    main()
