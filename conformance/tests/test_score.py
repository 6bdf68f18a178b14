"""The suite's own score, and what it calls an error."""

import json

import pytest
from click.testing import CliRunner

from attentest.cli import main
from attentest.faults import fault_of, faults
from attentest.score import Trial, scored, trial_of


def command(*words: str):
    return CliRunner().invoke(main, ["faults", *words])


@pytest.fixture(scope="module")
def slug() -> str:
    return next(one for one, fault in faults().items() if fault.changes == ("generator",))


def test_a_fault_is_tried_in_each_of_its_specimens(slug):
    trials = trial_of(slug)
    assert [trial.specimen for trial in trials] == list(fault_of(slug).specimens)
    for trial in trials:
        assert trial.statuses[fault_of(slug).clause] in ("violation", "error")
        assert "attention.formula" not in trial.statuses


def test_the_score_names_every_error_of_the_suite(slug):
    clause = fault_of(slug).clause
    own = [one for one, fault in faults().items() if fault.clause == clause]
    quiet = [Trial(one, "plain", {clause: "pass", "attention.formula": "violation"}) for one in own]
    result = scored(quiet)
    assert result.survived == own
    assert result.spurious == [(one, "attention.formula") for one in own]
    assert clause in result.idle
    assert not result.perfect


def test_a_fault_has_to_die_in_both_specimens(slug):
    clause = fault_of(slug).clause
    half = [Trial(slug, "plain", {clause: "violation"}), Trial(slug, "fused", {clause: "pass"})]
    assert scored(half).survived == [slug]
    assert scored([half[0]]).killed == [slug]


def test_the_command_prints_the_score_and_writes_it(slug, tmp_path):
    target = tmp_path / "score.json"
    result = command(slug, "--workers", "1", "--json", str(target))
    assert result.exit_code == 0, result.output
    assert "1 of 1 faults killed by their own clause, 2 plantings, 0 false alarms" in result.output
    written = json.loads(target.read_text())
    assert written["killed"] == [slug]
    assert {trial["specimen"] for trial in written["trials"]} == {"plain", "fused"}


def test_an_unknown_fault_is_answered_with_the_nearest():
    result = command("attention.scale-mising")
    assert result.exit_code == 2
    assert "attention.scale-missing" in result.output
