"""The suite's own score, and what it calls an error."""

import json
import subprocess
import sys
import time
from itertools import product

import psutil
import pytest
from arrival import GUARD
from click.testing import CliRunner

from attentest.faults import fault_of, faults
from attentest.faults.unusual import UNUSUAL
from attentest.interfaces.cli.main import main
from attentest.judging.score import Named, scored
from attentest.judging.trials import Task, Trial, tasks
from attentest.results.verdict import LikelyCause, Status, Verdict
from attentest.views.detection import sentences
from attentest_spec.clauses import clauses


def command(*words: str):
    return CliRunner().invoke(main, ["faults", *words])


@pytest.fixture(scope="module")
def slug() -> str:
    return next(one for one, fault in faults().items() if fault.changes == ("generator",))


@pytest.fixture
def judged(monkeypatch) -> list[tuple[str, int, str]]:
    """Note which clauses are judged, with which seed and in full or not, without judging them."""
    asked = []

    def judge(bench, slug):
        asked.append((bench.backend.name, bench.seed, slug, bench.effort))
        return Verdict(bench.backend.name, slug, "pass")

    monkeypatch.setattr("attentest.judging.judge.judge", judge)
    return asked


def test_a_fault_is_tried_in_each_of_its_specimens_with_every_seed(slug, judged):
    fault = fault_of(slug)
    trials = Task(slug, (0, 3)).trials()
    assert [(one.specimen, one.seed) for one in trials] == list(product(fault.models, (0, 3)))
    assert list(trials[1].statuses) == [fault.clause]
    assert "model.formula" in trials[0].statuses
    assert "attention.formula" not in trials[0].statuses
    assert list(trials[2].statuses) == [fault.clause]  # the other specimen
    assert {clause for _, _, clause, effort in judged if effort == 1.0} == {fault.clause}


def test_alone_is_the_own_clause_in_every_specimen(slug, judged):
    trials = Task(slug, (1, 2), alone=True).trials()
    assert [list(trial.statuses) for trial in trials] == [[fault_of(slug).clause]] * len(trials)
    assert len(trials) == 2 * len(fault_of(slug).models)


def test_everything_is_every_clause_in_full_with_every_seed(slug, judged):
    trials = Task(slug, (1, 2), everything=True).trials()
    assert all(set(trial.statuses) == set(clauses()) for trial in trials)
    assert len(trials) == 2 * len(fault_of(slug).models)
    assert {effort for *_, effort in judged} == {1.0}


def test_the_score_names_every_error_of_the_suite(slug):
    clause = fault_of(slug).clause
    own = [one for one, fault in faults().items() if fault.clause == clause]
    statuses = {clause: Status.PASS, "attention.formula": Status.VIOLATION}
    result = scored([Trial(one, "plain", 0, statuses) for one in own])
    assert result.survived == own
    assert result.spurious == [(one, "attention.formula") for one in own]
    assert clause in result.idle
    assert not result.perfect


def test_failure_of_correct_code_is_a_false_alarm(slug):
    unusual = next(iter(UNUSUAL))
    calm = Trial(
        unusual, "", 0, {"a.b": Status.PASS, "a.c": Status.ABSENT, "a.d": Status.DEVIATION}
    )
    assert scored([calm]).perfect
    for status in set(Status) - {"pass", "absent", "deviation"}:
        result = scored([calm, Trial(unusual, "", 1, {"a.b": status})])
        assert result.alarms == [(unusual, "a.b", status)]
        assert not result.perfect
    assert any("1 false alarm:" in sentence for sentence in sentences(result))


def test_a_fault_has_to_die_in_both_specimens_and_with_every_seed(slug):
    clause = fault_of(slug).clause
    dead, alive = {clause: Status.VIOLATION}, {clause: Status.PASS}
    assert scored([Trial(slug, "plain", 0, dead), Trial(slug, "fused", 0, alive)]).survived
    assert scored([Trial(slug, "plain", 0, dead), Trial(slug, "plain", 1, alive)]).survived
    assert scored([Trial(slug, "plain", 0, dead)]).detected == [slug]


def test_the_zoo_is_judged_where_no_fault_is_named(slug):
    assert not any(task.unusual for task in tasks([slug], []))
    assert {task.subject for task in tasks([], []) if task.unusual} == set(UNUSUAL)
    some = {task.subject for task in tasks([], ["layer_norm"]) if task.unusual}
    assert some == {one for one, backend in UNUSUAL.items() if "layer_norm" in backend.components}
    trial = Task(min(some), (0,), unusual=True).trials()[0]
    assert {clauses()[one].component for one in trial.statuses} == {"layer_norm"}


@pytest.mark.proof
def test_the_command_prints_the_score_and_writes_it(slug, tmp_path):
    target = tmp_path / "score.json"
    result = command(slug, "--workers", "1", "--json", str(target), "--diagnose")
    assert result.exit_code == 0, result.output
    assert "mistakes in values: 2 of 2 named first" in result.output, result.output
    sentence = "1 of 1 fault detected by its own clause (2 injections, seed 0); 0 noticed"
    assert sentence in result.output
    written = json.loads(target.read_text())
    assert written["killed"] == [slug]
    assert {trial["specimen"] for trial in written["trials"]} == {"plain", "fused"}


def test_an_unknown_fault_is_answered_with_the_nearest():
    result = command("attention.scale-mising")
    assert result.exit_code == 2
    assert "attention.scale-missing" in result.output


def test_it_is_counted_where_the_diagnosis_names_the_fault(slug):
    mine = LikelyCause("fault", (slug,), "", 0.0)
    same = LikelyCause("option", ("a=b",), "", 0.0)
    worse = LikelyCause("fault", ("other.one",), "", 0.0, missed=1)
    words = LikelyCause("complaint", ("other.one",), "")

    def count(*likely_causes):
        return Named.of([Trial(slug, "plain", 0, {}, likely_causes)])

    assert count(mine, same) == Named(1, 0, 0, 1)
    assert count(same, mine) == Named(0, 1, 0, 1)
    assert count(worse, mine) == count(words, mine) == Named(0, 0, 1, 1)
    assert count(same) == count() == Named(0, 0, 0, 1)


@pytest.mark.proof
def test_workers_end_with_a_command_that_is_killed():
    words = [sys.executable, "-m", "attentest", "faults", "--own"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        parent = psutil.Process(started.pid)
        while not (workers := parent.children()) and started.poll() is None:
            time.sleep(0.1)
        started.kill()
    assert workers
    _, left = psutil.wait_procs(workers, timeout=GUARD)
    assert not left
