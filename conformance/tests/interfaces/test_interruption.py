"""Whatever ends a command ends the processes that it started, at once and not at their limits."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from arrival import GUARD, Arrivals, arrivals, interruptible
from folders import SUPPORT
from proof import share
from started import started

from attentest.judging.run import run
from attentest.results.plan import Plan

TARGET = """
import time
{announced}
time.sleep(86400)
"""

ANNOUNCED = """
import sys
sys.path.insert(0, "{folder}")
{announced}
from hangs_in_call import backend
"""

COMMANDS = {
    "run": ("run", "ONE", "TWO"),
    "check": ("check", "ONE"),
    "identify": ("identify", "ONE"),
    "compare": ("compare", "ONE", "TWO"),
    "trace": ("trace", "ONE"),
    "cost": ("cost", "ONE", "TWO"),
    "learn": ("learn", "ONE", "TWO"),
}
"""Every command that starts processes, with targets that hang."""


@pytest.fixture
def place() -> Iterator[Arrivals]:
    with arrivals() as found:
        yield found


@contextmanager
def under_way(name: str, place: Arrivals, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command in a process group of its own, as a terminal does."""
    for target in ("ONE", "TWO"):
        (folder / target).with_suffix(".py").write_text(TARGET.format(announced=place.code))
    words = [f"{word}.py" if word.isupper() else word for word in COMMANDS[name]]
    with interruptible():
        command = subprocess.Popen(
            [sys.executable, "-m", "attentest", *words, "--timeout", "86400"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
    try:
        yield command
    finally:
        command.kill()
        command.wait()


@pytest.mark.proof
@share(7)
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_command_and_its_workers(name, place, tmp_path):
    with under_way(name, place, tmp_path) as command:
        workers = [place.wait() for word in COMMANDS[name] if word.isupper()]
        os.killpg(command.pid, signal.SIGINT)
        assert command.wait(GUARD) == 1
        for worker in workers:
            worker.wait_for_end()


@share(3)
@pytest.mark.parametrize("name", COMMANDS)
def test_no_worker_outlives_a_command_that_is_killed(name, place, tmp_path):
    with under_way(name, place, tmp_path) as command:
        workers = [place.wait() for word in COMMANDS[name] if word.isupper()]
        command.kill()
        for worker in workers:
            worker.wait_for_end()


def test_ctrl_c_that_another_thread_receives_ends_a_run(place, tmp_path):
    def interrupting(*_: object) -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    target = tmp_path / "announced.py"
    target.write_text(ANNOUNCED.format(folder=SUPPORT / "hostile", announced=place.code))
    before = started()
    with interruptible(), pytest.raises(KeyboardInterrupt):
        run([str(target)], Plan(("attention.one-key",), limit=GUARD), listener=interrupting)
    assert place.wait().ended()
    assert not {" ".join(one.cmdline()) for one in started() - before}
