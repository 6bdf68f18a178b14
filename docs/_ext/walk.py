"""Walks: the commands and the code of a page, executed from top to bottom.

A walk starts in an empty folder; `cd` has an effect on the commands after it. Does not depend on
Sphinx.
"""

import ast
import shlex
from pathlib import Path

from commands import Ended, run


class Walk:
    """The folder in which a page is executed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, command: str) -> Ended:
        """Run `command` in the current folder; `cd` changes it."""
        first, *rest = shlex.split(command)
        if first != "cd":
            return run(command, self.folder)
        (target,) = rest
        self.folder = (self.folder / target).resolve(strict=True)
        return Ended(0, "")

    def paste(self, file: str, code: str) -> None:
        """Write `code` into `file`; each definition replaces the one of the same name.

        A missing file is created with `code` as its content.
        """
        path = self.folder / file
        if path.exists():
            code = merge(path.read_text(encoding="utf-8"), code)
        path.write_text(code, encoding="utf-8")


def cut(text: str, start: str, end: str) -> str:
    """Return the lines from the first with `start` to the first with `end` after it."""
    lines = [line.rstrip() for line in text.rstrip().splitlines() or [""]]
    first = next((i for i, line in enumerate(lines) if start in line), None)
    if first is None:
        raise ValueError(f"no line of the output contains {start!r}")
    last = next((i for i, line in enumerate(lines[first:], first) if end and end in line), None)
    if end and last is None:
        raise ValueError(f"no line after it contains {end!r}")
    return "\n".join(
        ["..."] * bool(first)
        + lines[first : len(lines) if last is None else last + 1]
        + ["..."] * (last is not None and last + 1 < len(lines))
    )


def merge(text: str, code: str) -> str:
    """Return the Python `text` with the imports and definitions of `code` in it.

    An import is inserted before the first one; a definition replaces the one of the same name.
    Raises ValueError if there is none, and for any other code.
    """
    for node in ast.parse(code).body:
        source = ast.get_source_segment(code, node)
        assert source is not None
        if isinstance(node, ast.Import | ast.ImportFrom):
            text = text if source in text.splitlines() else _add_import(text, source)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            text = _replace(text, node.name, source)
        else:
            raise ValueError(f"only imports and definitions can be merged, not: {source}")
    return text


def _add_import(text: str, source: str) -> str:
    lines = text.splitlines(keepends=True)
    first = next(
        node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)
    )
    return "".join([*lines[: first.lineno - 1], source + "\n", *lines[first.lineno - 1 :]])


def _replace(text: str, name: str, source: str) -> str:
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        if getattr(node, "name", "") == name:
            assert node.end_lineno is not None
            return "".join([*lines[: node.lineno - 1], source + "\n", *lines[node.end_lineno :]])
    raise ValueError(f"there is no {name} to replace")
