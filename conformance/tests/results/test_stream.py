"""The stream: valid line by line, complete only with its footer, and read back as written."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from folders import DOCS
from jsonschema import Draft202012Validator, ValidationError
from report_cases import HOSTILE, SLUGS, all_of, altered, judged, mixed, written

from attentest.results import stream
from attentest.results.files import Unreadable
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Run
from attentest.results.verdict import Counterexample, LikelyCause, Location, Status, Verdict

OLD = Path(__file__).with_name("stream_of_format_1.jsonl")
"""Written by a version whose verdicts had neither `measured`, `where` nor `location`."""

PLAN = Plan(("attention.formula", "attention.shapes"))
CAUSE = LikelyCause("fault", ("attention.unscaled",), "the scores are not scaled", 1e-13)
NUMBERS = (0.5, 0.1, 1e-5, "model.py:3 in attend")
LOCATION = Location("att.py", 14, "s = q @ k.mT", "scores", "q k / 2", "q k", confirmed=True)
EXAMPLE = Counterexample(("build",), "code", "1", "2")


def result(*statuses: str, failure: str = "") -> BackendRun:
    verdicts = [
        Verdict(
            *("one", slug, Status(status), "why", ("note",), EXAMPLE, (CAUSE,)),
            *(0.5, 0.1, 1e-5, "x", LOCATION),
        )
        for slug, status in zip(PLAN.clauses, statuses, strict=False)
    ]
    return replace(judged("one", {}, failure=failure), verdicts=verdicts)


def events(*backends: BackendRun) -> list[dict]:
    return [json.loads(line) for line in stream.text(Run.of(PLAN, backends)).splitlines()]


def test_every_line_is_valid():
    lines = events(result("pass", "violation"))
    validator = Draft202012Validator(stream.schema())
    for event in lines:
        validator.validate(event)
    assert [event["type"] for event in lines] == [
        "header",
        "backend",
        "case",
        "case",
        "measured",
        "cause",
        "footer",
    ]


def test_a_cause_has_its_line_and_its_clauses():
    assert not [one for one in events(result("pass", "pass")) if one["type"] == "cause"]
    lines = events(result("violation", "violation"))
    (cause,) = [one for one in lines if one["type"] == "cause"]
    assert cause == {
        "type": "cause",
        "backend": "one",
        "status": "violation",
        "text": "the scores are not scaled",
        "clauses": list(PLAN.clauses),
        "file": "att.py",
        "line": 14,
        "confirmed": True,
        "known": ["attention.unscaled"],
    }


def test_the_schema_refuses_unknown_keys():
    Draft202012Validator.check_schema(stream.schema())
    event = events(result("pass", "pass"))[2] | {"surprise": 1}
    with pytest.raises(ValidationError):
        Draft202012Validator(stream.schema()).validate(event)


def test_a_verdict_survives_the_stream():
    verdict = result("violation").verdicts[0]
    assert Verdict.from_dict(json.loads(json.dumps(verdict.as_dict()))) == verdict
    assert all(getattr(verdict, one.name) for one in fields(verdict))


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (("pass", "deviation"), 0),
        (("warning", "absent"), 0),
        (("pass", "violation"), 1),
        (("pass", "error"), 1),
        (("pass", "timeout"), 1),
        (("pass", "crash"), 1),
        (("pass", "suite-bug"), 1),
        (("pass",), 1),
    ],
)
def test_the_exit_code(statuses, code):
    assert Run.of(PLAN, [result(*statuses)]).exit_code == code


def test_a_backend_that_is_not_loaded_takes_precedence():
    backends = [result("pass", "violation"), result(failure="no")]
    assert Run.of(PLAN, backends).exit_code == 3


# Reading ------------------------------------------------------------------------------------------


def test_a_run_survives_its_stream(tmp_path: Path) -> None:
    backends = [*mixed(), result("violation", "error")]
    command = {"lent": 'pip install "lent[library]"'}
    run = Run.of(
        Plan((*SLUGS, "attention.shapes"), seed=3, reading={"mask": "keep"}), backends, command
    )
    path = tmp_path / "a.jsonl"
    path.write_text(stream.text(run), encoding="utf-8")
    found = stream.read(path)
    assert found == run
    assert found.name == "a.jsonl"
    assert stream.text(found) == stream.text(run)


def test_a_stream_of_an_older_version_is_read() -> None:
    run = stream.read(OLD)
    assert run.targets == [
        "mistaken.py:backend",
        "undeclared.py:backend",
        "raises.py:backend",
        "away.py",
        "library",
    ]
    wrong, undeclared, raising, away, library = run
    statuses = [verdict.status for verdict in wrong.verdicts]
    assert statuses == ["absent", "violation", "violation", "absent"]
    assert wrong.description.choices == {"norm_variance": "biased", "norm_epsilon": 1e-5}
    assert wrong.verdicts[1].counterexample.steps[0].startswith("build layer_norm")
    assert wrong.verdicts[1].diagnosis[0].kind == "combination"
    assert [verdict.measured for verdict in undeclared.verdicts] == [None] * 4
    assert raising.verdicts[1].where == ""
    assert raising.verdicts[1].finding == raising.verdicts[1].message
    assert away.failure.endswith("there is no file away.py.")
    assert library.score == (4, 4)
    assert library.measured["dropout sites"].startswith("attention weights")
    assert run.not_installed == {"other": 'pip install "attentest-other[library]"'}
    assert run.exit_code == 3


def test_the_keys_of_the_stream_are_those_of_an_older_version() -> None:
    """A reader that was written for an older stream finds every key that it knows."""
    old = [json.loads(line) for line in OLD.read_text(encoding="utf-8").splitlines()]
    new = [json.loads(line) for line in stream.text(stream.read(OLD)).splitlines()]
    new = [one for one in new if one["type"] != "cause"]  # of later versions
    assert len(old) == len(new)
    for event in old:
        (same,) = (one for one in new if _about(one) == _about(event))
        assert {name: same[name] for name in event} == event


def _about(event: dict) -> tuple[object, ...]:
    return event["type"], event.get("backend"), event.get("clause")


def test_texts_are_made_plain(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", judged("one", all_of("error")))
    altered(path, 3, message=HOSTILE)
    (found, *_) = stream.read(path)["one"].verdicts[1:2]
    assert "\\u202e\\ud800" in found.message
    assert "<script>" in found.message


def test_a_stream_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *mixed())
    lines = path.read_text().splitlines(keepends=True)
    for kept, reason in ((lines[:-1], "no footer"), ([*lines[:-2], lines[-2][:30]], "is no JSON")):
        path.write_text("".join(kept))
        with pytest.raises(Unreadable, match=reason):
            stream.read(path)


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
        stream.read(altered(path, number, **changes))


@pytest.mark.parametrize("text", ["", "\n", '{"type": "backend"}\n', "not json\n", "[]\n"])
def test_file_without_a_stream_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(Unreadable, match="no valid stream"):
        stream.read(path)


def test_streams_that_were_joined_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", judged("one", all_of("pass")))
    path.write_text(path.read_text() * 2)
    with pytest.raises(Unreadable, match="two headers"):
        stream.read(path)


def test_a_missing_file_and_a_binary_one_are_told(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="cannot be read"):
        stream.read(tmp_path / "none.jsonl")
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Unreadable, match="is no text"):
        stream.read(tmp_path / "b")


def test_a_stream_of_before_reasons_were_written_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", judged("one", all_of("pass")))
    lean = [
        {name: one[name] for name in one if name not in ("reason", "source")}
        for one in stream.read(path).clauses.values()
    ]
    assert "reason" not in stream.read(altered(path, 0, clauses=lean)).clauses[SLUGS[0]]


def test_the_name_of_a_file_is_made_plain(tmp_path: Path) -> None:
    path = written(tmp_path / "a\x1b\udcff.jsonl", judged("one", all_of("pass")))
    assert stream.read(path).name == "a\\x1b\\udcff.jsonl"


def test_page_of_the_stream_finds_its_schema() -> None:
    page = (DOCS / "reference" / "stream.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(from importlib.*?)```", page, re.DOTALL)
    names: dict[str, str] = {}
    exec(code, names)
    assert json.loads(names["schema"])["$defs"]
