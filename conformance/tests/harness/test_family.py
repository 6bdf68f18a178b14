"""Processes that left their family, looked at while they execute a program."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from attentest.harness.family import EXECUTING, Family
from attentest.harness.starting import MARK


def test_a_process_that_is_looked_at_while_it_executes_a_program_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = subprocess.Popen(["sleep", "60"], env={MARK: "of-this-test"}, start_new_session=True)
    looks = []
    environ = psutil.Process.environ

    def without_one_at_first(process: psutil.Process) -> dict[str, str]:
        if process.pid == left.pid:
            looks.append(process.pid)
        return {} if len(looks) == 1 and process.pid == left.pid else environ(process)

    monkeypatch.setattr(psutil.Process, "environ", without_one_at_first)
    try:
        Family(None, "of-this-test").end()
        assert left.wait(timeout=10) < 0
        assert len(looks) > 1
    finally:
        left.kill()


def test_a_process_without_an_environment_of_others_is_waited_for_shortly() -> None:
    code = "import time; print('started', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], env={}, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        begun = time.monotonic()
        Family(None, "of-no-process").end()
        assert time.monotonic() - begun >= EXECUTING
        assert other.poll() is None
        other.kill()


def test_delay_of_a_process_that_ends_meanwhile_is_none(monkeypatch):
    def vanished(*_):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(Path, "glob", vanished)
    assert Family(os.getpid(), "").delayed() == 0
