"""Verdicts by kind of clause, and whether numbers were compared at all."""

import json
from dataclasses import replace

import jsonschema
import pytest

from attentest.results import stream
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Description, Run
from attentest.results.verdict import Status, Verdict
from attentest.results.wording import report, summary, uncompared
from attentest_spec.clauses import KINDS, clauses


def run(**statuses: str) -> Run:
    """Return the run of a backend with verdicts on the clauses named, - and . written as _."""
    slugs = {slug.replace(".", "_").replace("-", "_"): slug for slug in clauses()}
    judged = {slugs[name]: Status(status) for name, status in statuses.items()}
    backend = BackendRun(
        "mine",
        Description(components=("encoder_layer", "encoder", "multi_head_attention")),
        [Verdict("mine", slug, status, "no parameter map") for slug, status in judged.items()],
    )
    return Run.of(Plan(tuple(judged)), [backend])


def test_summary_counts_by_kind() -> None:
    found = run(encoder_layer_formula="violation", encoder_shapes="pass", encoder_formula="pass")
    text = summary(found["mine"], found.plan)
    assert text.endswith("(1 violation, 2 pass); values 1 of 2, robustness 1 of 1")


def test_one_error_in_several_clauses_is_counted_once() -> None:
    found = run(encoder_layer_formula="error", encoder_shapes="error", encoder_formula="pass")
    assert "(1 error in 2 clauses, 1 pass)" in summary(found["mine"], found.plan)
    first = found["mine"].verdicts[0]
    found["mine"].verdicts[0] = replace(first, message="calling it raised TypeError: no")
    assert "(2 error, 1 pass)" in summary(found["mine"], found.plan)
    text = report(found["mine"], found.plan)
    assert text.count("error: ") == 2
    found["mine"].verdicts[0] = first
    assert report(found["mine"], found.plan).count("error: ") == 1


def test_kinds_that_were_not_judged_are_left_out() -> None:
    assert run(encoder_layer_formula="absent", encoder_shapes="pass")["mine"].scores == {
        "robustness": (1, 1)
    }


@pytest.mark.parametrize("status", ["pass", "deviation", "violation", "warning"])
def test_clause_about_values_that_was_judged_compares_numbers(status: str) -> None:
    found = run(encoder_layer_formula=status, encoder_formula="absent")
    assert found["mine"].compared == 1
    assert not found["mine"].lacks_numbers
    assert found.exit_code in (0, 1)
    assert uncompared(found["mine"]) == []


@pytest.mark.parametrize("other", ["encoder_shapes", "encoder_gradient"])
def test_shapes_and_gradients_alone_compare_no_outputs(other: str) -> None:
    found = run(**{"encoder_layer_formula": "absent", other: "pass"})
    assert found["mine"].compared == 0
    assert found.exit_code == 3
    (line,) = uncompared(found["mine"])
    assert line.startswith("mine: NO NUMBERS WERE COMPARED")
    assert "(no parameter map)" in line
    assert "attentest new" in line
    assert report(found["mine"], found.plan).splitlines()[-1] == line


@pytest.mark.parametrize(("status", "code"), [("error", 1), ("timeout", 1), ("suite-bug", 1)])
def test_failure_takes_precedence_over_nothing_compared(status: str, code: int) -> None:
    assert run(encoder_layer_formula="absent", encoder_shapes=status).exit_code == code


def test_numbers_that_nobody_asked_for_are_not_missed() -> None:
    assert run(encoder_shapes="pass").exit_code == 0


def test_component_that_is_not_provided_has_no_numbers_to_miss() -> None:
    assert run(decoder_formula="absent", encoder_shapes="pass").exit_code == 0


def test_stream_holds_the_kinds() -> None:
    found = run(encoder_layer_formula="pass", encoder_shapes="pass")
    events = [json.loads(line) for line in stream.text(found).splitlines()]
    for event in events:
        jsonschema.validate(event, stream.schema())
    assert [one["kind"] for one in events[0]["clauses"]] == ["values", "robustness"]
    assert events[-1]["kinds"] == {"mine": {"values": [1, 1], "robustness": [1, 1]}}
    assert stream.parsed(stream.text(found), "it")["mine"].scores == found["mine"].scores


def test_every_kind_has_clauses() -> None:
    assert [kind for kind in KINDS if any(one.kind == kind for one in clauses().values())] == [
        *KINDS
    ]
