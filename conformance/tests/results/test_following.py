"""Questions about a whole that follow from a mistake in a part of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attentest.results.following import followed_by
from attentest.results.verdict import Status

SOURCE = '''def half(x):
    return -x


def turn(x):
    """Turn x."""
    return half(x)


class Net:
    pass
'''


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(SOURCE)
    return str(tmp_path / "own.py")


def cause(file: str, line: int | None, name: str = "", severity: Status = Status.VIOLATION) -> Any:
    head = SimpleNamespace(backend=f"{file}:{name}")
    return SimpleNamespace(severity=severity, file=file, line=line, head=head)


def asked(line: int) -> str:
    return f"GPT has not its numbers: those that it computes begin at own.py:{line} (return x). Or"


def test_line_of_a_mistake(file: str) -> None:
    warning, mistake = cause(file, 81, severity=Status.WARNING), cause(file, 81)
    found = [cause(file, 8), cause("", None), mistake]
    assert followed_by(asked(81), found) == "on the line of cause 3"
    assert followed_by(asked(81), [warning, *found[:2]]) == ""


def test_line_of_a_function_that_a_mistake_breaks(file: str) -> None:
    found = [cause(file, 2, "turn")]
    assert followed_by(asked(7), found) == "in turn, which cause 1 breaks"


@pytest.mark.parametrize("line", [1, 10])
def test_line_of_another_function_follows_from_nothing(file: str, line: int) -> None:
    assert followed_by(asked(line), [cause(file, 2, "turn")]) == ""


def test_file_that_cannot_be_read_has_no_functions(tmp_path: Path) -> None:
    missing = str(tmp_path / "own.py")
    assert followed_by(asked(7), [cause(missing, 2, "turn")]) == ""
