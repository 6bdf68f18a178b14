"""Writes the matrix of a real run into README.md, between its two markers.

Run by `tox -e readme`. The matrix is shortened to a few chapters, with the number of omitted lines;
the row of scores and the closing sentences are complete.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from markers import write_between

README = Path(__file__).resolve().parents[1] / "README.md"
SHOWN = ("attention", "layer_norm", "encoder")
PER_CHAPTER = 8
WIDTH = 100


def main() -> None:
    """Run, shorten, and write; nothing is written if an implementation does not conform."""
    script = Path(sys.executable).with_name("attentest")
    ended = subprocess.run(
        [str(script), "run"],
        env={**os.environ, "COLUMNS": str(WIDTH)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ended.returncode:
        sys.exit(f"attentest run ended with {ended.returncode}; README.md is unchanged.")
    write_between(README, "matrix", f"```text\n$ attentest run\n{shorten(ended.stdout)}\n```")


def shorten(printed: str) -> str:
    """Return the head, some chapters and the scores of the matrix, and the closing sentences."""
    lines = [line.rstrip() for line in printed.splitlines()]
    matrix, rest = lines[: lines.index("")], lines[lines.index("") + 1 :]
    closing = rest[len(rest) - rest[::-1].index("") :]
    return "\n".join([*_chapters(matrix), "", *closing])


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
        if omitted and (line in SHOWN or not line or line == matrix[-1]):
            yield f"  .. {omitted} more"
            omitted = 0
        chapter, count = line, 0
        if line in SHOWN or line in (matrix[0], matrix[-1]):
            yield line


if __name__ == "__main__":
    main()
