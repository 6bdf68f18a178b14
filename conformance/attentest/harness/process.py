"""A child process for code that may hang, crash or use up the machine, and the limits it has.

Whatever runs in there, the parent can end it: a child leads a session of its own, is killed and not
asked, and so is everything that it started.
"""

import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from attentest.harness import messages
from attentest.harness.errors import ProcessFailure, Stopped
from attentest.harness.family import Family
from attentest.harness.messages import Listener
from attentest.harness.pipes import Pipes
from attentest.harness.starting import POLL, start
from attentest.results.text import line

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

LOAD_LIMIT = 120.0
"""Seconds a backend may take to be imported, or a diagnosis."""

CROWDED = 10
"""Multiple of its limit that an answer may take where other processes keep the machine busy."""

PROCESSES = 32
"""The largest number of processes of a child, with all that it starts."""

GIB = 2**30

_EXIT = 3.0
"""Seconds that a process whose pipe is closed may take to exit: the system may be busy."""

_LAST_PIECES = 64


@dataclass(frozen=True)
class Isolation:
    """The limits of a child: `seconds` for an answer, GiB of `memory` with all that it starts.

    Time in which it waits for a processor does not count, up to :data:`CROWDED` times the seconds.

    For its first answer, that it has loaded a backend, it has `loading` seconds where they are
    given. Once `stop` is set, whoever waits for an answer is given Stopped.
    """

    seconds: float = 120.0
    memory: float = 4.0
    loading: float | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the event behind: it can be set in its own process alone."""
        return Isolation, (self.seconds, self.memory, self.loading)


class Child:
    """A child process that answers calls; it is ended with the `with` statement.

    `seconds` is the time that it has from one message to the next.
    """

    def __init__(
        self,
        module: str,
        isolation: Isolation,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Prepare a process that answers by the METHODS of `module` (see `harness.worker`).

        It has `environment` besides this process's own.
        """
        self._module = module
        self._isolation = isolation
        self._environment = environment
        self._looked = 0.0
        self._sampled = -POLL, 0.0  # when it was looked how long it was delayed, and that
        self.seconds = isolation.loading or isolation.seconds

    def __enter__(self) -> "Child":
        """Start the process; where Ctrl-C interrupts that, end what was started."""
        mark = uuid.uuid4().hex
        made = None
        try:
            made = start(self._module, mark, self._environment, self._isolation.stop)
            self._process, self._family, self._pipes = made, Family(made.pid, mark), Pipes(made)
        except BaseException:
            Family(None, mark).end()  # its process id may not be known yet
            if made:
                with suppress(ProcessLookupError):  # a child that was forked just now has no mark
                    os.kill(made.pid, signal.SIGKILL)
                made.wait()
                Pipes(made).close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the process and all that it started, whatever they do."""
        self._family.end()
        with suppress(OSError):  # its group may hold one that is found in no other way
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._pipes.close()

    def call(self, method: str, listen: Listener | None = None, **arguments: Any) -> Any:
        """Return what `method` answers to `arguments`; `listen` is called with its events.

        Raises ProcessFailure where the process is lost, Stopped once it is stopped, and what the
        method raised of :data:`~attentest.harness.messages.ERRORS`.
        """
        self._pipes.send(messages.call(method, arguments, listen=listen is not None))
        while True:
            match self._message():
                case {"type": "answer", "answer": answer}:
                    return answer
                case {"type": "error", "error": name, "reason": reason}:
                    raise messages.ERRORS[name](reason)
                case {"event": event} if listen:
                    listen(event)
                case _:
                    raise messages.disturbed()

    def _message(self) -> dict[str, Any]:
        """Wait for the next message."""
        begun, delayed = time.monotonic(), self._delayed()
        end, late = begun + self.seconds, False
        while (text := self._pipes.line()) is None:
            if self._isolation.stop.is_set():
                raise Stopped("the command was interrupted")
            self._demand_moderation()
            if time.monotonic() > end and self._had_its_time(begun, delayed):
                # What came since the last look was in time.
                if late or not self._pipes.wait(0):
                    raise ProcessFailure("timeout", f"no answer within {self.seconds:g} seconds")
                late = True
                continue
            ended = self._pipes.closed or self._process.poll() is not None
            # What it wrote is read to the end; a process that it left may hold the pipe open.
            if not self._pipes.wait(0 if ended else self._patience(end)) and ended:
                raise ProcessFailure("crash", self._death())
        return messages.read(text)

    def _delayed(self) -> float:
        """Return how long it waited for a processor, as it was up to one look ago: it costs."""
        now = time.monotonic()
        if now > self._sampled[0] + POLL:
            self._sampled = now, self._family.delayed()
        return self._sampled[1]

    def _patience(self, end: float) -> float:
        left = end - time.monotonic()
        return min(POLL, left) if left > 0 else POLL

    def _had_its_time(self, begun: float, delayed: float) -> bool:
        """Say whether it had the time for an answer since `begun`, when it was `delayed` as long.

        What it waited for a processor on a busy machine does not count, up to a limit.
        """
        elapsed = time.monotonic() - begun
        own = elapsed - (self._family.delayed() - delayed)
        return own > self.seconds or elapsed > CROWDED * self.seconds

    def _demand_moderation(self) -> None:
        """Look from time to time at what it uses; raise where that is beyond a limit."""
        if time.monotonic() < self._looked + POLL:
            return
        self._looked = time.monotonic()
        running, held = self._family.usage()
        limit = self._isolation.memory
        if running > PROCESSES:
            reason = f"it ran {running} processes, the limit is {PROCESSES}"
            raise ProcessFailure("crash", reason)
        if held / GIB > limit:
            used = f"its process used {held / GIB:.2g} GiB, the limit is {limit:g} GiB"
            raise ProcessFailure("crash", f"{used}; raise it with --memory")
        if self._pipes.overlong:
            raise messages.disturbed()

    def _death(self) -> str:
        """Say how the process ended by itself, with the last line that it printed."""
        try:
            code = self._process.wait(timeout=_EXIT)
        except subprocess.TimeoutExpired:
            return "it closed the pipe to its parent"
        for _ in range(_LAST_PIECES):  # what still prints may do so without end
            if not self._pipes.wait(0):
                break
        names = {one.value: one.name for one in signal.Signals}
        how = f"exit code {code}" if code >= 0 else names.get(-code, f"signal {-code}")
        printed = self._pipes.tail.decode("utf-8", "replace").splitlines()
        last = next((line(one, 200) for one in reversed(printed) if one.strip()), "")
        return f"the process ended with {how}" + (f" ({last})" if last else "")


def in_threads(
    actions: Mapping[K, Callable[[], T]], workers: int, stop: threading.Event
) -> dict[K, T]:
    """Return what each of the `actions` returns, `workers` at a time; one alone needs no thread.

    Ctrl-C and the first exception set `stop` and are raised as soon as those at work have ended.
    """
    if workers == 1:
        return {key: action() for key, action in actions.items()}
    with ThreadPoolExecutor(workers) as pool:
        try:
            futures = {key: pool.submit(action) for key, action in actions.items()}
            waiting = set(futures.values())
            while waiting:
                # Not without end: that wait misses Ctrl-C where another thread got the signal.
                done, waiting = wait(waiting, timeout=POLL, return_when=FIRST_EXCEPTION)
                for one in done:
                    one.result()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {key: future.result() for key, future in futures.items()}
