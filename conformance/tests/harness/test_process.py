"""A child process: what it answers, its limits, and that nothing of it is left."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import psutil
import pytest
from folders import SUPPORT
from proof import share
from started import started as descendants

from attentest.harness import process, starting
from attentest.harness.errors import NotConvertible, ProcessFailure, Stopped, Unavailable
from attentest.harness.family import Family
from attentest.harness.process import CROWDED, Child, Isolation, in_threads

LONG = "x" * 10**6


AFRESH = {"SETTING_OF_ITS_OWN": "1"}
"""An environment that no other child has: a process with one is not forked."""

environment: dict[str, str] = {}


@pytest.fixture(scope="module", params=["afresh", "forked"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Start children in both ways, where they find the module `answering`."""
    environment.update(AFRESH if request.param == "afresh" else {})
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(SUPPORT)
        with started():  # only the next one is forked
            pass
        yield request.param
    environment.clear()


def started(**isolation: object) -> Child:
    return Child("answering", Isolation(**isolation), environment)  # type: ignore[arg-type]


def sleeping() -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline"])
    return [one for one in found if "86397.5" in " ".join(one.info["cmdline"] or ())]


@pytest.fixture(scope="module")
def child(way: str) -> Iterator[Child]:
    with started() as made:
        yield made


@pytest.mark.parametrize("value", [None, 7, [1.5, float("inf")], {"a": "\ud800"}, LONG])
def test_answers_are_the_values_that_the_method_returns(child: Child, value: object) -> None:
    assert child.call("echo", value=value) == value


def test_events_come_in_order_and_before_the_answer(child: Child) -> None:
    heard: list[int] = []
    assert child.call("events", lambda event: heard.append(event["step"]), number=300) == 300
    assert heard == list(range(300))


@pytest.mark.parametrize(
    ("kind", "raised"),
    [("Unavailable", Unavailable), ("NotConvertible", NotConvertible), ("other", Unavailable)],
)
def test_errors_of_the_child_are_raised_in_the_parent(
    child: Child, kind: str, raised: type[Exception]
) -> None:
    with pytest.raises(raised, match="so"):
        child.call("raises", kind=kind)
    assert child.call("echo", value=1) == 1


def test_answers_that_are_no_plain_values_are_unavailable(child: Child) -> None:
    with pytest.raises(Unavailable, match="not JSON serializable"):
        child.call("unreadable")


def test_children_are_started_in_both_ways(child: Child, way: str) -> None:
    words = child.call("words")
    assert ("attentest.harness.fork_server" in words) == (way == "forked")


def test_children_have_the_folder_the_environment_and_the_mark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answering.py").symlink_to(SUPPORT / "answering.py")
    monkeypatch.setenv("OF_THIS_CALL", "1")
    with started() as child:
        place, path, given, marked = child.call("surroundings", names=["OF_THIS_CALL", "HOME"])
    assert place == path == str(tmp_path)
    assert given == ["1", os.environ.get("HOME")]
    assert marked


@pytest.mark.parametrize(("own", "given"), [(None, "1"), ("0", "0")])
def test_children_use_no_hub_unless_a_variable_of_the_user_says_so(
    monkeypatch: pytest.MonkeyPatch, own: str | None, given: str
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    if own is not None:
        monkeypatch.setenv("HF_HUB_OFFLINE", own)
    with started() as child:
        assert child.call("surroundings", names=["HF_HUB_OFFLINE"])[2] == [given]


def test_children_end_with_the_code_that_they_give_themselves() -> None:
    with started() as child, pytest.raises(ProcessFailure, match="ended with exit code 9"):
        child.call("exits", code=9)


@pytest.mark.proof
@share(2)
def test_a_child_that_kills_its_parent_costs_no_other_child(way: str) -> None:
    if way == "afresh":
        pytest.skip("the parent is this process")
    with started() as child, pytest.raises(ProcessFailure, match="SIGKILL"):
        child.call("kills_parent")
    starting._servers[-1].process.wait(60)  # until it has ended, it may be asked and not answer
    with started() as child:
        assert child.call("echo", value=1) == 1
        assert "attentest.harness.fork_server" in child.call("words")


@pytest.mark.proof
def test_child_outlives_its_server(way: str) -> None:
    if way == "afresh":
        pytest.skip("the parent is this process")
    with started() as child:
        server = starting._servers[-1].process
        server.kill()
        server.wait()
        assert child._process.poll() is None
        assert child.call("echo", value=1) == 1
    assert child._process.poll() == -signal.SIGKILL


def test_children_read_no_input_and_use_one_thread(child: Child) -> None:
    assert child.call("alone") == "1"


def test_a_child_that_dies_is_reported_with_its_last_line() -> None:
    with started() as child, pytest.raises(ProcessFailure, match=r"code 5 \(its last line\)"):
        child.call("dies", code=5)


def test_a_child_that_is_silent_is_a_timeout() -> None:
    with started() as child:
        child.call("echo", value=0)
        child.seconds = 0.1
        with pytest.raises(ProcessFailure, match=r"no answer within 0\.1 seconds") as failure:
            child.call("sleeps")
    assert failure.value.status == "timeout"


def test_time_in_which_a_child_waits_for_a_processor_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with started() as child:
        child.call("echo", value=0)
        child.seconds = 0.05
        monkeypatch.setattr(child._family, "delayed", time.monotonic)
        begun = time.monotonic()
        with pytest.raises(ProcessFailure, match="no answer within") as failure:
            child.call("sleeps")
    assert failure.value.status == "timeout"
    assert time.monotonic() - begun > CROWDED * 0.05


def test_the_delay_of_a_process_is_that_of_its_threads() -> None:
    assert 0.0 <= Family(os.getpid(), "none").delayed() < 1e6
    assert Family(None, "none").delayed() == 0.0


def test_a_child_that_is_stopped_is_given_up() -> None:
    stop = threading.Event()
    with started(stop=stop) as child:
        child.call("echo", value=0)
        threading.Timer(0.1, stop.set).start()
        with pytest.raises(Stopped):
            child.call("sleeps")


def test_a_start_that_is_interrupted_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    before, pipes = descendants(), process.Pipes

    def interrupted(_: object) -> NoReturn:
        monkeypatch.setattr(process, "Pipes", pipes)
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "Pipes", interrupted)
    with pytest.raises(KeyboardInterrupt), started():
        pass
    assert descendants() == before


def test_first_child_is_forked_where_several_are_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_last", [])
    starting.prepare()
    with Child("answering", Isolation()) as child:
        assert "attentest.harness.fork_server" in child.call("words")


def test_child_is_not_forked_for_a_parent_that_was_interrupted(way: str) -> None:
    if way == "afresh":
        pytest.skip("no server is asked")
    stop = threading.Event()
    stop.set()
    with started():  # its server runs
        server = starting._servers[-1].process.pid
        os.kill(server, signal.SIGSTOP)
        try:
            with pytest.raises(Stopped), started(stop=stop):
                pass
        finally:
            os.kill(server, signal.SIGCONT)
        before = descendants()
        with started() as child:  # which comes after the other request
            child.call("echo", value=0)
        assert descendants() == before


def test_memory_beyond_the_limit_is_a_crash() -> None:
    with started(memory=0.5) as child, pytest.raises(ProcessFailure, match=r"is 0\.5 GiB"):
        child.call("takes", mebibytes=600)


def test_processes_beyond_the_limit_are_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    with started() as child:
        child.call("starts", many=3)
        monkeypatch.setattr(process, "PROCESSES", 3)
        with pytest.raises(ProcessFailure, match="it ran 4 processes, the limit is 3"):
            child.call("sleeps")
    assert not sleeping()


def test_detached_processes_end_with_their_child() -> None:
    with started() as child:
        child.call("starts", many=2)
        # What was started has its own command line only after it has replaced its parent's.
        deadline = time.monotonic() + 60
        while len(sleeping()) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(sleeping()) == 2
    assert not sleeping()


@pytest.mark.parametrize("workers", [1, 3])
def test_results_of_threads_are_in_the_order_of_the_actions(workers: int) -> None:
    actions = {number: lambda number=number: number**2 for number in range(9)}
    found = in_threads(actions, workers, threading.Event())  # type: ignore[arg-type]
    assert list(found.items()) == [(number, number**2) for number in range(9)]


def test_the_first_exception_stops_what_runs_beside_it() -> None:
    stop = threading.Event()

    def wrong() -> bool:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        in_threads({"waits": lambda: stop.wait(300), "wrong": wrong}, 2, stop)
    assert stop.is_set()
