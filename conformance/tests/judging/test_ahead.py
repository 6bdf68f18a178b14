"""Several processes for one backend: the verdicts are those of one process."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pytest
from folders import SUPPORT

from attentest.harness.errors import ProcessFailure, Stopped
from attentest.harness.messages import Listener
from attentest.judging import ahead
from attentest.judging.ahead import Ahead, processes_for
from attentest.judging.run import run
from attentest.results.plan import Plan, select
from attentest.results.verdict import Verdict
from attentest.studies.participants import Remote

MINIATURES = SUPPORT / "miniatures.py"
ONCE = SUPPORT / "hostile" / "loads_once.py"
PLAN = Plan(("a", "b", "c", "d"))


class Worker:
    """A process that sends verdicts and is lost then; one without any is silent before."""

    def __init__(self, *sent: Verdict) -> None:
        self.targets = ("backend",)
        self.sent = sent
        self.asked: list[Mapping[str, Any]] = []
        self.silent = threading.Event()

    @contextmanager
    def process(self) -> Iterator["Worker"]:
        yield self

    def call(self, method: str, listen: Listener, **arguments: Any) -> None:
        self.asked.append(arguments)
        for one in self.sent:
            listen({"step": "start", "clause": one.clause})
            listen({"step": "verdict", **one.as_dict()})
        self.silent.wait(0 if self.sent else 60)
        raise ProcessFailure("crash", "it is lost")


def read(clause: str, fields: Mapping[str, Any]) -> Verdict:
    return Verdict.from_dict({**fields, "clause": clause, "backend": "backend"})


def started(worker: Worker) -> Ahead:
    found = Ahead(lambda _: cast("Remote", worker), PLAN, 1, read)
    found.start()
    return found


def test_neighbours_are_judged_by_different_processes_and_no_cause_is_searched():
    worker = Worker(Verdict("", "b", "pass"))
    with started(worker) as judging:
        assert judging.before(PLAN.clauses) == ("a",)
        assert judging.take("b", threading.Event())
    (asked,) = worker.asked
    assert asked["plan"] == {**Plan(("b", "d"), diagnose=False, shrink=False).as_dict()}


def test_only_a_clause_that_holds_is_taken():
    worker = Worker(Verdict("", "b", "deviation", "declared"), Verdict("", "d", "violation", "no"))
    stop = threading.Event()
    with started(worker) as judging:
        assert judging.take("a", stop) is None
        taken = judging.take("b", stop)
        assert judging.take("d", stop) is None
        assert judging.before(("d",)) == ("d",)
    assert taken
    assert (taken.status, taken.message) == ("deviation", "declared")


def test_clauses_after_the_one_that_it_is_lost_at_have_no_verdict():
    stop = threading.Event()
    with started(Worker(Verdict("", "b", "pass"))) as judging:
        assert judging.take("b", stop)
        assert judging.take("d", stop) is None


def test_two_verdicts_of_one_clause_are_the_end_of_the_process():
    stop = threading.Event()
    sent = (Verdict("", "b", "pass"), Verdict("", "b", "pass"), Verdict("", "d", "pass"))
    with started(Worker(*sent)) as judging:
        assert judging.take("d", stop) is None


def test_whoever_waits_is_stopped():
    worker = Worker()
    stop = threading.Event()
    stop.set()
    with started(worker) as judging:
        with pytest.raises(Stopped):
            judging.take("b", stop)
        worker.silent.set()


def test_short_plans_and_other_devices_are_judged_by_one_process():
    everything = Plan(select())
    assert processes_for(everything, 1) == 1
    assert processes_for(everything, 2) == 2
    assert processes_for(everything, 64) == len(everything.clauses) // ahead.WORTH
    assert processes_for(everything, 0) == 1
    assert processes_for(Plan(everything.clauses, device="cuda"), 8) == 1
    assert processes_for(Plan(everything.clauses, reading={}), 8) == 1
    assert processes_for(Plan(everything.clauses[: ahead.WORTH]), 8) == 1


@pytest.mark.parametrize("name", ["good", "wrong"])
def test_the_verdicts_are_those_of_one_process(monkeypatch, name):
    monkeypatch.setattr(ahead, "WORTH", 2)
    plan = Plan(select(components=["attention"])[:8], effort=0.2)
    alone, divided = (
        [
            {**verdict.as_dict(), "seconds": 0}
            for verdict in run([f"{MINIATURES}:{name}"], plan, workers=workers).backends[0].verdicts
        ]
        for workers in (1, 3)
    )
    assert divided == alone
    assert {one["status"] for one in alone} >= {"violation" if name == "wrong" else "pass"}


def test_a_backend_that_loads_once_is_judged_by_the_process_that_loaded_it(monkeypatch, tmp_path):
    monkeypatch.setattr(ahead, "WORTH", 1)
    monkeypatch.setenv("HOSTILE_FLAG", str(tmp_path / "loaded"))
    target = tmp_path / "once.py"
    target.write_text(
        f"import os, pathlib, sys\nsys.path.insert(0, {str(SUPPORT)!r})\n"
        "flag = pathlib.Path(os.environ['HOSTILE_FLAG'])\n"
        "if flag.exists():\n    raise ImportError('only once')\n"
        "flag.touch()\nfrom miniatures import good\n"
    )
    (result,) = run([f"{target}:good"], Plan(select(components=["attention"])[:4], effort=0.2))
    assert not result.failure
    assert {verdict.status for verdict in result.verdicts} <= {"pass", "absent"}
