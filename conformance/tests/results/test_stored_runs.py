"""Streams are read back whole or refused with the line and the reason."""

from pathlib import Path

import pytest
from report_cases import HOSTILE, SLUGS, all_of, altered, judged, mixed, written

from attentest.results import stored_runs
from attentest.results.files import Unreadable


def test_a_run_survives_its_stream(tmp_path: Path) -> None:
    backends = mixed()
    run = stored_runs.read(written(tmp_path / "a.jsonl", *backends))
    assert run.name == "a.jsonl"
    assert run.plan == SLUGS
    assert list(run.backends) == [one.target for one in backends]
    assert [list(run.cases[one.target].values()) for one in backends] == [
        one.verdicts for one in backends
    ]
    assert run.backends["away"]["failure"] == "There is no file away."
    assert run.measured["good"] == {"dropout sites": "none"}


def test_texts_are_made_plain(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", judged("one", all_of("error")))
    altered(path, 3, message=HOSTILE)
    (found, *_) = list(stored_runs.read(path).cases["one"].values())[1:2]
    assert "\\u202e\\ud800" in found.message
    assert "<script>" in found.message


def test_a_stream_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *mixed())
    lines = path.read_text().splitlines(keepends=True)
    for kept, reason in ((lines[:-1], "no footer"), ([*lines[:-2], lines[-2][:30]], "is no JSON")):
        path.write_text("".join(kept))
        with pytest.raises(Unreadable, match=reason):
            stored_runs.read(path)


@pytest.mark.parametrize(
    ("number", "changes", "reason"),
    [
        (0, {"format": 2}, "of format 2, and this version reads 1"),
        (0, {"clauses": []}, "does not say what .* is"),
        (0, {"surprise": 1}, "line 1: .*surprise"),
        (2, {"seconds": float("nan")}, r"line 3: \$.seconds: it is not finite"),
        (2, {"budget": float("inf")}, r"line 3: \$.budget: it is not finite"),
        (2, {"status": "fine"}, r"line 3: \$.status"),
        (2, {"clause": "attention.shapes"}, "which was not planned"),
        (2, {"backend": "another"}, "which was not planned"),
        (3, {"clause": SLUGS[0]}, "twice by the same clause"),
        (3, {"type": "trace"}, "line 4 is of no known type"),
        (-1, {"totals": {}}, "not about the same backends"),
        (-1, {"totals": {"one": {"pass": 7}}}, "lines are lost"),
    ],
)
def test_a_stream_that_contradicts_itself_is_refused(
    tmp_path: Path, number: int, changes: dict[str, object], reason: str
) -> None:
    path = written(tmp_path / "a.jsonl", judged("one", all_of("pass")))
    with pytest.raises(Unreadable, match=reason):
        stored_runs.read(altered(path, number, **changes))


@pytest.mark.parametrize("text", ["", "\n", '{"type": "backend"}\n', "not json\n", "[]\n"])
def test_what_is_no_stream_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(Unreadable, match="no valid stream"):
        stored_runs.read(path)


def test_streams_that_were_joined_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", judged("one", all_of("pass")))
    path.write_text(path.read_text() * 2)
    with pytest.raises(Unreadable, match="two headers"):
        stored_runs.read(path)


def test_a_missing_file_and_a_binary_one_are_told(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="cannot be read"):
        stored_runs.read(tmp_path / "none.jsonl")
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Unreadable, match="is no text"):
        stored_runs.read(tmp_path / "b")


def test_a_stream_of_before_reasons_were_written_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", judged("one", all_of("pass")))
    header = stored_runs.read(path).header
    lean = [
        {name: one[name] for name in one if name not in ("reason", "source")}
        for one in header["clauses"]
    ]
    assert "reason" not in stored_runs.read(altered(path, 0, clauses=lean)).header["clauses"][0]


def test_the_name_of_a_file_is_made_plain(tmp_path: Path) -> None:
    path = written(tmp_path / "a\x1b\udcff.jsonl", judged("one", all_of("pass")))
    assert stored_runs.read(path).name == "a\\x1b\\udcff.jsonl"
