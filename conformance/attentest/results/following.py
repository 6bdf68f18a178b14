"""Questions about a whole that follow from a mistake in one of its parts."""

import re
from collections.abc import Sequence
from pathlib import Path

from attentest.results.causes import Cause
from attentest.results.parts import lines_of_definitions

_NAMED = re.compile(r" (?P<file>[^\s/]+\.py):(?P<line>\d+) \(")


def followed_by(question: str, found: Sequence[Cause]) -> str:
    """Return where the step is that a question names as the first that differs, "" for elsewhere.

    It follows from a cause that has this line, or that breaks the function or class around it.
    """
    causes = [(n, one) for n, one in enumerate(found, 1) if one.severity.fails_run]
    named = [(one["file"], int(one["line"])) for one in _NAMED.finditer(question)]
    for number, cause in causes:
        if (Path(cause.file).name, cause.line) in named:
            return f"on the line of cause {number}"
    for number, cause in causes:
        name = cause.head.backend.rpartition(":")[2]
        if any(_is_inside(cause.file, file, line, name) for file, line in named):
            return f"in {name}, which cause {number} breaks"
    return ""


def _is_inside(path: str, file: str, line: int, name: str) -> bool:
    """Say whether a line of `file`, which is at `path`, is one of what has this name there."""
    return Path(path).name == file and line in lines_of_definitions(path).get(name, ())
