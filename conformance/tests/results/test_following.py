"""Questions about a whole, and lines in it, that follow from a mistake in a part of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attentest.results.following import followed_by
from attentest.results.parts import line_of_part, lines_of_parts
from attentest.results.verdict import Location, Status, Verdict

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


def broken(file: str, name: str, line: int, *, confirmed: bool = False) -> Verdict:
    place = Location(file, line, "", "scores", "", "", confirmed)
    return Verdict(f"own.py:{name}", f"{name}.formula", "violation", location=place)


def test_a_line_in_a_part_that_is_broken_by_itself_is_that_of_the_part(file: str) -> None:
    lines = lines_of_parts([broken(file, "turn", 7), broken(file, "turn", 6, confirmed=True)])
    assert line_of_part(broken(file, "Net", 7), lines) == (file, 6)
    assert line_of_part(broken(file, "turn", 7), lines) is None
    assert line_of_part(broken(file, "Net", 2), lines) is None
    assert line_of_part(broken(file, "Net", 11), lines) is None


def test_a_whole_that_is_wrong_in_a_part_is_no_part_that_is_broken(file: str) -> None:
    lines = lines_of_parts([broken(file, "Net", 7)])
    assert line_of_part(broken(file, "Model", 7), lines) is None
