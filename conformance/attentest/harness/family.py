"""A process and everything that it starts, found and ended however it detaches."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from attentest.harness.starting import MARK

ENDING = 5.0
"""Seconds after which a process that cannot be killed, such as one in the kernel, is left."""

EXECUTING = 0.5
"""Seconds for which a new process without an environment may be one that executes a program."""

_OF_THE_KERNEL = 2
"""The process that starts the threads of the kernel, which have no environment."""


class Family:
    """The process `pid`, its children, theirs, and all whose environment has the same `mark`.

    Where the process id is not known, those are found by their mark alone.
    A child may lead a session of its own and outlive its parent; it is remembered once it was seen.
    """

    def __init__(self, pid: int | None, mark: str) -> None:
        self._pid = pid
        self._mark = mark
        self._members: set[psutil.Process] = set()
        self._begun = time.time() - 1.0  # the system counts in hundredths of a second
        self._unsure = False
        if pid is not None:
            with suppress(psutil.Error):
                self._members.add(psutil.Process(pid))

    def usage(self) -> tuple[int, int]:
        """Return the number of processes that run, and the bytes of memory that they hold."""
        running = self._running()
        held = 0
        for one in running:
            with suppress(psutil.Error):
                held += one.memory_info().rss
        return len(running), held

    def delayed(self) -> float:
        """Return for how many seconds its process waited for a processor that was busy.

        That of the thread that waited longest counts; 0 where the system does not say it.
        """
        found = [0.0]
        with suppress(OSError):  # it ends while its threads are listed
            for one in Path(f"/proc/{self._pid}/task").glob("*/schedstat"):
                with suppress(OSError, ValueError, IndexError):
                    found.append(int(one.read_text().split()[1]) / 1e9)
        return max(found)

    def end(self) -> None:
        """Kill all of them but this process.

        They are stopped first: what still ran could start another one that is not found, because
        the process that started it is gone.
        """
        begun = time.monotonic()
        stopped: set[psutil.Process] = set()
        while (others := self._others()) or self._may_execute(begun):
            if time.monotonic() > begun + ENDING:
                return
            complete = others <= stopped or time.monotonic() > begun + ENDING / 2
            for one in others:
                with suppress(psutil.Error):
                    (one.kill if complete else one.suspend)()
            stopped = {one for one in others if _status(one) == psutil.STATUS_STOPPED}
            time.sleep(0.002)

    def _may_execute(self, begun: float) -> bool:
        """Say whether one of the family may have been looked at without its environment."""
        return self._unsure and time.monotonic() < begun + EXECUTING

    def _others(self) -> set[psutil.Process]:
        """Return those that run; where none does, those that left before they were seen."""
        others = {one for one in self._running() if one.pid != os.getpid()}
        if not others:
            others = {one for one in self._marked() if one.pid != os.getpid()}
            self._members |= others
        return others

    def _running(self) -> set[psutil.Process]:
        """Look for new members, and return all that run."""
        found: set[psutil.Process] = set()
        for one in sorted(self._members, key=lambda one: one.pid != self._pid):
            if one not in found and _runs(one):
                found.add(one)
                with suppress(psutil.Error):
                    found.update(filter(_runs, one.children(recursive=True)))
        self._members = found
        return found

    def _marked(self) -> Iterator[psutil.Process]:
        """Yield those with the mark; a process that executes a program has none for a moment."""
        self._unsure = False
        for one in psutil.process_iter():
            with suppress(psutil.Error):
                environment = one.environ()
                if environment.get(MARK) == self._mark and _runs(one):
                    yield one
                self._unsure |= not environment and self._is_young(one)

    def _is_young(self, one: psutil.Process) -> bool:
        return one.create_time() > self._begun and one.ppid() != _OF_THE_KERNEL and _runs(one)


def _runs(one: psutil.Process) -> bool:
    return _status(one) not in ("", psutil.STATUS_ZOMBIE)


def _status(one: psutil.Process) -> str:
    with suppress(psutil.Error):
        return str(one.status()) if one.is_running() else ""
    return ""
