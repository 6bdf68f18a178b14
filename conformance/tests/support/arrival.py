"""Processes that announce themselves to a test, which then waits for events and for no time.

A connection that is opened says where a process is; that it is closed says that the process, and
every child that it forked, has ended.
"""

import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest

from attentest.harness import process

GUARD = 180.0
"""Seconds after which a test gives up an event that does not come: far beyond any slow machine."""


class Arrivals:
    """The server at `port` to which processes announce themselves, such as by running `code`."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._server = self._open.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._server.settimeout(GUARD)
        self.port = self._server.getsockname()[1]
        self.code = f"import socket; arrived = socket.create_connection(('127.0.0.1', {self.port}))"

    def close(self) -> None:
        self._open.close()

    def wait(self) -> "Arrival":
        """Wait until one more process has announced itself."""
        connection = self._open.enter_context(self._server.accept()[0])
        connection.settimeout(GUARD)
        return Arrival(connection)

    def waits(self) -> bool:
        """Return whether a process has arrived that was not waited for."""
        return bool(select.select([self._server], [], [], 0)[0])


class Arrival:
    """A process that has announced itself."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def ended(self) -> bool:
        """Return whether it has ended; nothing else closes or writes to the connection."""
        return bool(select.select([self._connection], [], [], 0)[0])

    def wait_for_end(self) -> None:
        """Wait until it has ended; TimeoutError for one that goes on."""
        assert self._connection.recv(1) == b""


@contextmanager
def arrivals() -> Iterator[Arrivals]:
    place = Arrivals()
    try:
        yield place
    finally:
        place.close()


@contextmanager
def hurried(place: Arrivals, seconds: float) -> Iterator[None]:
    """Let the clock of the process runner jump by `seconds` while a process that arrived lives.

    A process that hangs is then beyond its limit at the next look at it, and never before it has
    arrived, wherever the runner is at that moment.
    """
    clock, lock = time.monotonic, threading.Lock()
    alive: list[Arrival] = []
    jumps = 0

    def ahead() -> float:
        nonlocal jumps
        with lock:
            while place.waits():
                alive.append(place.wait())
                jumps += 1
            alive[:] = [one for one in alive if not one.ended()]
            jumps += bool(alive)
        return clock() + jumps * seconds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "time", SimpleNamespace(monotonic=ahead))
        yield


@contextmanager
def interruptible() -> Iterator[None]:
    """Let the processes that are started inside heed Ctrl-C.

    A shell lets what it starts in the background ignore it, and that is inherited.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
