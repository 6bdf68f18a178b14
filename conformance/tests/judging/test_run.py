"""The runs: replacement of workers, and that whatever ends a run ends its workers too."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
from arrival import GUARD, arrivals, interruptible
from folders import SUPPORT
from proof import share

from attentest.harness.errors import ProcessFailure
from attentest.harness.messages import Listener
from attentest.judging.run import PATIENCE, run
from attentest.results.plan import Plan, select
from attentest.results.run import BackendRun
from attentest.results.verdict import Verdict

MINIATURES = SUPPORT / "miniatures.py"
HOSTILE = SUPPORT / "hostile"
SLUGS = ("attention.formula", "attention.shapes", "attention.one-key")


def test_verdicts_come_in_the_order_of_the_plan():
    (result,) = run([f"{MINIATURES}:good"], Plan(SLUGS, effort=0.3))
    assert [verdict.clause for verdict in result.verdicts] == list(SLUGS)
    assert {verdict.status for verdict in result.verdicts} == {"pass"}


def test_a_violation_has_a_witness_that_reproduces_it(capsys):
    plan = Plan(SLUGS[:1])
    verdict = run([f"{MINIATURES}:wrong"], plan).backends[0].verdicts[0]
    assert verdict.status == "violation"
    assert verdict.counterexample is not None
    exec(verdict.counterexample.code, {})
    printed = capsys.readouterr().out
    assert verdict.counterexample.actual.strip("[] ").split()[0][:4] in printed


def test_backend_that_does_not_load_has_a_reason():
    plan = Plan(select(slugs=SLUGS[:1]))
    missing, nameless = run(["/no/such/file.py", f"{MINIATURES}:nobody"], plan)
    assert "there is no file" in missing.failure
    assert "no object named 'nobody'" in nameless.failure
    assert not missing.verdicts


def test_a_replaced_worker_is_announced_once():
    announced: list[str] = []

    def listener(judged: BackendRun, verdict: object) -> None:
        if verdict is None:
            announced.append(judged.target)

    target = f"{HOSTILE / 'dies_in_call.py'}"
    run([target], Plan(SLUGS[:2], effort=0.3), listener=listener)
    assert announced == [target]


def test_a_backend_that_loads_once_crashes_where_it_was(monkeypatch, tmp_path):
    monkeypatch.setenv("HOSTILE_FLAG", str(tmp_path / "loaded"))
    (result,) = run([f"{HOSTILE / 'loads_once.py'}"], Plan(SLUGS, effort=0.3))
    assert not result.failure
    first, second, third = result.verdicts
    assert (first.status, second.status, third.status) == ("crash", "crash", "crash")
    assert "exit code 3" in first.message
    assert "replacing its process failed" in second.message
    assert "only once" in second.message


class LostInDiagnosis:
    """A worker that finds a violation, and is lost while it looks for the mistake behind it."""

    def __init__(self, *_: object) -> None:
        self.seconds = 0.0

    @contextmanager
    def process(self) -> Iterator["LostInDiagnosis"]:
        yield self

    def call(self, method: str, listen: Listener | None = None, **arguments: Any) -> Any:
        if method == "describe":
            return {"title": "", "components": [], "choices": {}, "limits": {}}
        clause = arguments["plan"]["clauses"][0]
        assert listen
        listen({"step": "start", "clause": clause})
        if not arguments["plan"]["diagnose"]:
            passed = Verdict("", clause, "pass").as_dict()
            listen({"step": "verdict", **passed})
            raise ProcessFailure("crash", "no more than one is judged")
        listen({"step": "found", **Verdict("", clause, "violation", "It is wrong.").as_dict()})
        raise ProcessFailure("timeout", "no answer within 9 seconds")


def test_a_diagnosis_that_fails_costs_no_verdict(monkeypatch):
    monkeypatch.setattr("attentest.judging.run.Remote", LostInDiagnosis)
    (result,) = run(["lost"], Plan(SLUGS[:1]))
    (verdict,) = result.verdicts
    assert (verdict.status, verdict.message) == ("violation", "It is wrong.")
    assert "the likely cause was not found: no answer within 9 seconds" in verdict.notes[0]


def test_slow_diagnoses_are_ended_and_the_rest_is_judged(monkeypatch):
    monkeypatch.setattr("attentest.judging.run.Remote", LostInDiagnosis)
    (result,) = run(["lost"], Plan(SLUGS[:1] * (PATIENCE + 1)))
    statuses = [one.status for one in result.verdicts]
    assert statuses == ["violation"] * PATIENCE + ["pass"]


def test_an_error_of_the_listener_ends_the_run_and_its_workers():
    def full(judged: BackendRun, verdict: object) -> None:
        raise OSError(28, "No space left on device")

    before = set(psutil.Process().children())
    targets = [f"{MINIATURES}:good", f"{HOSTILE / 'hangs_in_call.py'}"]
    with pytest.raises(OSError, match="No space left"):
        run(targets, Plan(SLUGS), workers=2, listener=full)
    assert set(psutil.Process().children()) <= before


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_an_ended_run_leaves_the_verdicts_that_it_had(tmp_path, monkeypatch, sent):
    stream = tmp_path / "stream.jsonl"
    words = ["run", str(HOSTILE / "sound.py"), str(HOSTILE / "hangs_in_call.py")]
    more = ["--workers", "1", "--clause", "attention.one-key", "--json", str(stream)]
    with arrivals() as place, interruptible():
        monkeypatch.setenv("HOSTILE_PORT", str(place.port))
        command = subprocess.Popen(
            [sys.executable, "-m", "attentest", *words, *more, "--timeout", "86400"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        place.wait()  # by now the first backend is judged
        os.kill(command.pid, sent)
        assert command.wait(GUARD) != 0
    written = stream.read_text(encoding="utf-8")
    assert written.endswith("\n")
    assert '"status": "pass"' in written
    assert '"footer"' not in written
