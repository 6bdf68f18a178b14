"""A walk: the commands and the code of a page, carried out from its top to its bottom.

It begins in an empty folder; `cd` is kept from one command to the next. Knows nothing of Sphinx.
"""

import ast
import os
import shlex
import subprocess
import sys
from pathlib import Path

LIMIT = 300


class Walk:
    """The folder in which a page is being carried out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run `command` where the walk has come to; `cd` moves on."""
        first, *rest = shlex.split(command)
        if first != "cd":
            return ran(command, self.folder)
        (there,) = rest
        self.folder = (self.folder / there).resolve(strict=True)
        return subprocess.CompletedProcess(command, 0, stdout="")

    def paste(self, file: str, code: str) -> None:
        """Put `code` into `file`: each definition in the place of the one that has its name.

        A file that is not there is made of `code` alone.
        """
        path = self.folder / file
        if path.exists():
            code = pasted(path.read_text(encoding="utf-8"), code)
        path.write_text(code, encoding="utf-8")


def ran(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `command` in `folder`, with the scripts of this interpreter."""
    scripts = str(Path(sys.executable).parent)
    return subprocess.run(
        shlex.split(command),
        cwd=folder,
        env={
            **os.environ,
            "PATH": os.pathsep.join([scripts, os.environ.get("PATH", "")]),
            "COLUMNS": "88",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def cut(text: str, start: str, end: str) -> str:
    """Return the lines from the first with `start` to the first with `end` behind it."""
    lines = [line.rstrip() for line in text.rstrip().splitlines() or [""]]
    first = next((i for i, line in enumerate(lines) if start in line), None)
    if first is None:
        raise ValueError(f"nothing printed holds {start!r}")
    last = next((i for i, line in enumerate(lines[first:], first) if end and end in line), None)
    if end and last is None:
        raise ValueError(f"nothing printed holds {end!r}")
    return "\n".join(
        ["..."] * bool(first)
        + lines[first : len(lines) if last is None else last + 1]
        + ["..."] * (last is not None and last + 1 < len(lines))
    )


def pasted(text: str, code: str) -> str:
    """Return the Python `text` with the imports and definitions of `code` in it.

    An import goes before the first one; a definition replaces the one that has its name. Raises
    ValueError where there is none, and for code that is neither.
    """
    for node in ast.parse(code).body:
        source = ast.get_source_segment(code, node)
        assert source is not None
        if isinstance(node, ast.Import | ast.ImportFrom):
            text = text if source in text.splitlines() else _before_imports(text, source)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            text = _replaced(text, node.name, source)
        else:
            raise ValueError(f"only imports and definitions can be pasted, not: {source}")
    return text


def _before_imports(text: str, source: str) -> str:
    lines = text.splitlines(keepends=True)
    first = next(
        node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)
    )
    return "".join([*lines[: first.lineno - 1], source + "\n", *lines[first.lineno - 1 :]])


def _replaced(text: str, name: str, source: str) -> str:
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        if getattr(node, "name", "") == name:
            assert node.end_lineno is not None
            return "".join([*lines[: node.lineno - 1], source + "\n", *lines[node.end_lineno :]])
    raise ValueError(f"there is no {name} to be replaced")
