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
from attentest.judging.ahead import Ahead, divisible
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


def opened(worker: Worker, plan: Plan = PLAN) -> Ahead:
    found = Ahead(lambda _: cast("Remote", worker), plan, read)
    found.open()
    return found


@pytest.fixture(autouse=True)
def chunks_of_two(monkeypatch):
    monkeypatch.setattr(Ahead, "_chunk", 2)


def test_a_helper_takes_clauses_from_the_end_and_searches_no_cause():
    worker = Worker(Verdict("", "c", "pass"))
    with opened(worker) as judging:
        judging.help()
        assert judging.own(PLAN.clauses) == ("a", "b")
        assert judging.take("c", threading.Event())
    (asked,) = worker.asked
    assert asked["plan"] == {**Plan(("c", "d"), diagnose=False, shrink=False).as_dict()}


def test_the_first_process_takes_what_no_helper_has():
    with opened(Worker(Verdict("", "d", "pass"))) as judging:
        assert judging.own(PLAN.clauses) == ("a", "b")
        judging.help()
        assert judging.own(PLAN.clauses[1:]) == ("b",)
        assert judging.own(PLAN.clauses[2:]) == ("c",)


def test_alone_the_first_process_takes_all():
    judging = Ahead(lambda _: cast("Remote", Worker()), PLAN, read, alone=True)
    judging.open()
    assert judging.own(PLAN.clauses) == PLAN.clauses
    assert judging.share() == 0


def test_only_a_clause_that_holds_is_taken():
    stop = threading.Event()
    sent = Verdict("", "c", "deviation", "declared"), Verdict("", "d", "violation", "no")
    with opened(Worker(*sent)) as judging:
        judging.help()
        assert judging.take("a", stop) is None
        taken = judging.take("c", stop)
        assert judging.take("d", stop) is None
        assert judging.own(("d",)) == ("d",)
    assert taken
    assert (taken.status, taken.message) == ("deviation", "declared")


def test_after_the_clause_that_a_helper_is_lost_at_there_are_no_verdicts_and_no_helpers():
    stop = threading.Event()
    plan = Plan(tuple(map(str, range(2 * ahead.WORTH + 4))))
    with opened(Worker(Verdict("", plan.clauses[-2], "pass")), plan) as judging:
        assert judging.share()
        judging.help()
        assert judging.take(plan.clauses[-2], stop)
        assert judging.take(plan.clauses[-1], stop) is None
        assert not judging.share()


def test_two_verdicts_of_one_clause_are_the_end_of_the_process():
    stop = threading.Event()
    sent = (Verdict("", "c", "pass"), Verdict("", "c", "pass"), Verdict("", "d", "pass"))
    with opened(Worker(*sent)) as judging:
        judging.help()
        assert judging.take("d", stop) is None


def test_whoever_waits_is_stopped():
    worker = Worker()
    stop = threading.Event()
    with opened(worker) as judging:
        helper = threading.Thread(target=judging.help)
        helper.start()
        while not worker.asked:
            stop.wait(0.01)
        stop.set()
        with pytest.raises(Stopped):
            judging.take("d", stop)
        worker.silent.set()
        helper.join()


def test_short_plans_other_devices_and_code_that_is_read_are_not_divided():
    everything = Plan(select())
    assert divisible(everything)
    assert not divisible(Plan(everything.clauses, device="cuda"))
    assert not divisible(Plan(everything.clauses, reading={}))
    assert not divisible(Plan(everything.clauses[: 2 * ahead.WORTH - 1]))


def test_whoever_is_free_helps_the_one_with_the_most_clauses_left(monkeypatch):
    monkeypatch.setattr(ahead, "WORTH", 1)
    few, many = (
        opened(Worker(Verdict("", "pass", "pass")), Plan(tuple("abcdefgh"[:n]))) for n in (4, 8)
    )
    helped = []

    def ended(one: Ahead) -> None:
        helped.append(one)
        one.__exit__()

    monkeypatch.setattr(Ahead, "help", ended)
    ahead.help_others([few, many], threading.Event())
    assert helped == [many, few]


def test_nobody_is_helped_before_it_is_loaded_or_after_the_end():
    plan = Plan(tuple(map(str, range(2 * ahead.WORTH))))
    judging = Ahead(lambda _: cast("Remote", Worker()), plan, read)
    assert not judging.share()
    judging.open()
    assert judging.share() == ahead.WORTH
    with judging:
        pass
    assert judging.ended
    assert not judging.share()


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
