"""Result files say what they are, and what is none is refused with its reason."""

import json
from math import inf, nan
from pathlib import Path

import pytest

from attentest.results import files
from attentest.results.output import Occupied


def test_written_result_is_read(tmp_path: Path) -> None:
    files.write(tmp_path / "a.json", "cost", {"name": "ä", "numbers": (1, 2.5)})
    found = files.read(tmp_path / "a.json", "comparison", "cost")
    assert (found["type"], found["name"], found["numbers"]) == ("cost", "ä", [1, 2.5])
    assert found["environment"]["python"]


def test_a_number_that_is_not_finite_is_null(tmp_path: Path) -> None:
    files.write(tmp_path / "a.json", "cost", {"rows": [{"x": nan}, {"x": -inf}]})
    assert files.read(tmp_path / "a.json", "cost")["rows"] == [{"x": None}, {"x": None}]


def test_a_file_of_the_same_kind_is_replaced_and_another_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    files.write(path, "cost", {"n": 1})
    files.write(path, "cost", {"n": 2})
    with pytest.raises(Occupied, match="left as it is"):
        files.write(path, "learning", {})
    assert files.read(path, "cost")["n"] == 2


def test_failed_write_leaves_the_older_result(tmp_path: Path) -> None:
    file = tmp_path / "cost.json"
    files.write(file, "cost", {"seconds": 1})
    before = file.read_bytes()
    with pytest.raises(TypeError):
        files.write(file, "cost", {"seconds": object()})
    assert file.read_bytes() == before


def test_no_path_writes_nothing() -> None:
    files.write(None, "cost", {})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"type": "cost"', "is no JSON"),
        ("[]", "its type is 'list'"),
        ('{"type": "learning", "format": 1}', "its type is 'learning'"),
        ('{"type": "cost", "format": 9}', "of format 9"),
    ],
)
def test_file_without_a_result_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(files.Unreadable, match=reason):
        files.read(tmp_path / "a.json", "cost")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(files.Unreadable, match="cannot be read"):
        files.read(tmp_path / "none.json", "cost")


def test_the_text_is_json_that_begins_with_its_kind() -> None:
    text = files.text("cost", {})
    assert text.startswith('{"type": "cost"')
    assert json.loads(text)["format"] == files.FORMAT
