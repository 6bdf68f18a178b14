"""Work on the workers of a Dask scheduler, of which one is started here for all tests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from attentest.harness.process import Isolation
from attentest.interfaces.cli.main import main
from attentest.studies import cluster as module
from attentest.studies.cluster import Lost, NoScheduler, cluster
from attentest.studies.learning.participant import facts, remote
from attentest_spec.registry import LoadFailure

pytestmark = pytest.mark.proof  # each starts processes that import torch

SMALL = ("--steps=2", "--batch=2", "--length=3", "--width=8", "--inner-width=8", "--heads=2")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Start a scheduler with one worker, a process of its own, and return its address."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as local:
        yield local.scheduler_address


def called(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(main, words)


def halved(number: int) -> float:
    return 1 / number


def test_each_task_has_its_result_and_an_exception_is_its_reason(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AHEAD", 1)  # the others wait
    with cluster(0, scheduler) as machines:
        found: dict[int, Any] = dict(machines.each(halved, ((one, (one,)) for one in range(4))))
    assert {one: found[one] for one in (1, 2, 3)} == {1: 1.0, 2: 0.5, 3: 1 / 3}
    assert isinstance(found[0], Lost)
    assert "ZeroDivisionError" in found[0].reason


def test_no_scheduler_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(module, "CONNECT", "200ms")
    with pytest.raises(NoScheduler, match=r"answers at tcp://"), cluster(0, "tcp://127.0.0.1:9"):
        pass
    for words in (("faults", "masks.causal-inverted"), ("run", "paper"), ("learn", "paper")):
        found = called(*words, "--scheduler=tcp://127.0.0.1:9")
        assert found.exit_code == 2
        assert "No scheduler answers" in found.output


def test_a_participant_answers_from_there_and_its_refusals_come_back(scheduler: str) -> None:
    with cluster(0, scheduler) as machines:
        assert "model" in facts(machines.participant(remote("paper", Isolation()))).components
        with pytest.raises(LoadFailure, match=r"none\.py"):
            facts(machines.participant(remote("/none.py:None", Isolation())))


def test_faults_are_scored_there(scheduler: str, tmp_path: Path) -> None:
    out = tmp_path / "score.json"
    words = ("faults", "masks.causal-inverted", "--own", "--json", str(out))
    found = called(*words, "--scheduler", scheduler)
    assert found.exit_code == 0, found.output
    there = json.loads(out.read_text())
    assert there["killed"] == ["masks.causal-inverted"]


def test_a_run_there_has_the_verdicts_of_one_here(scheduler: str, tmp_path: Path) -> None:
    streams = []
    for name, there in (("here", ()), ("there", ("--scheduler", scheduler))):
        out = tmp_path / f"{name}.jsonl"
        words = ("run", "paper", "--component=residual", "--effort=0.1", "--json", str(out))
        found = called(*words, *there)
        assert found.exit_code == 0, found.output
        lines = [json.loads(one) for one in out.read_text().splitlines()]
        streams.append([one for one in lines if one["type"] == "case"])
    timed = ("seconds", "budget")
    here, elsewhere = (
        [{name: one for name, one in verdict.items() if name not in timed} for verdict in several]
        for several in streams
    )
    assert here == elsewhere != []


def test_a_curve_there_is_the_one_here(scheduler: str, tmp_path: Path) -> None:
    curves = []
    for name, there in (("here", ()), ("there", ("--scheduler", scheduler))):
        out = tmp_path / f"{name}.json"
        found = called("learn", "paper", *SMALL, "--json", str(out), *there)
        assert found.exit_code == 0, found.output
        curves.append([one["points"] for one in json.loads(out.read_text())["curves"]])
    assert curves[0] == curves[1]
