"""The stream: valid line by line, whole only with its footer."""

import io
import json

import pytest
from jsonschema import Draft202012Validator, ValidationError

from attentest.results.plan import Plan
from attentest.results.run import Judged
from attentest.results.stream import Writer, exit_code, schema
from attentest.results.verdict import Likeness, Verdict, Witness

PLAN = Plan(("attention.formula", "attention.shapes"))
LIKE = Likeness("fault", ("attention.unscaled",), "the scores are not scaled", 1e-13)
FACTS = {"title": "t", "components": ["attention"], "choices": {"norm_epsilon": 1e-5}, "limits": {}}


def result(*found: str, failure: str = "") -> Judged:
    witness = Witness(("build",), "code", "1", "2")
    verdicts = [
        Verdict("one", slug, status, "why", ("note",), witness, (LIKE,), 0.5, 0.1)
        for slug, status in zip(PLAN.clauses, found, strict=False)
    ]
    return Judged("one", FACTS, verdicts, failure=failure)


def written(judged: Judged) -> list[dict]:
    file = io.StringIO()
    writer = Writer(file, PLAN)
    writer(judged, None)
    for verdict in judged.verdicts:
        writer(judged, verdict)
    writer.close([judged], PLAN)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_every_line_is_valid():
    events = written(result("pass", "violation"))
    validator = Draft202012Validator(schema())
    for event in events:
        validator.validate(event)
    assert [event["type"] for event in events] == [
        "header",
        "backend",
        "case",
        "case",
        "measured",
        "footer",
    ]


def test_the_schema_refuses_what_is_not_in_it():
    Draft202012Validator.check_schema(schema())
    event = written(result("pass", "pass"))[2] | {"surprise": 1}
    with pytest.raises(ValidationError):
        Draft202012Validator(schema()).validate(event)


def test_a_verdict_survives_the_stream():
    verdict = result("violation").verdicts[0]
    assert Verdict.from_dict(json.loads(json.dumps(verdict.as_dict()))) == verdict


@pytest.mark.parametrize(
    ("found", "code"),
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
def test_the_exit_code(found, code):
    assert exit_code([result(*found)], PLAN) == code


def test_a_backend_that_is_not_loaded_wins():
    assert exit_code([result("pass", "violation"), result(failure="no")], PLAN) == 3
