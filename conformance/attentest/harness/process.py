"""One worker process as its parent sees it: what it says, how long it takes, how much it uses.

Whatever a backend does in there, the parent can end it: a worker leads a session of its own, is
killed and not asked, and so is every child of it that was ever seen.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

import psutil

from attentest.harness.child import POLL, Job, Stopped
from attentest.results.text import line

LOAD_LIMIT = 120.0
"""Seconds a backend may take to be imported, or a diagnosis."""

LAST_WORDS = 2.0
"""Seconds to wait for the end of what a dead worker printed; a child may hold its pipe open."""

GIB = 2**30

_LONGEST = 2**24
_TAIL = 2000


class Worker:
    """One worker process, the pipes to it, and the watch over it."""

    def __init__(
        self,
        module: str,
        job: Job,
        memory: float,
        stop: threading.Event,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Prepare a process that runs `module`, which calls :func:`attentest.harness.worker.serve`.

        It may use `memory` GiB and has `environment` besides this process's own; once `stop` is
        set, it raises Stopped.
        """
        self._environment = environment
        self._module = module
        self._job = json.dumps(job)
        self._memory = memory
        self._stop = stop
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._tail = b""
        self._family: set[psutil.Process] = set()
        self._looked = 0.0
        self._mishap: tuple[str, str] | None = None
        self.limit = LOAD_LIMIT

    def __enter__(self) -> "Worker":
        """Start the process and the threads that read from it."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **self._environment},
            start_new_session=True,
        )
        with suppress(psutil.Error):
            self._family.add(psutil.Process(self._process.pid))
        self._readers = [
            threading.Thread(target=reader, daemon=True)
            for reader in (self._read_lines, self._read_tail)
        ]
        for reader in self._readers:
            reader.start()
        self._write(self._job)
        return self

    def ask(self, question: Job) -> None:
        """Send one more line to the process, to which it answers with a message."""
        self._write(json.dumps(question))

    def _write(self, text: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it is dead; the exit code will be told
            self._process.stdin.write(text.encode() + b"\n")
            self._process.stdin.flush()  # and left open: the worker ends when it is closed

    def __exit__(self, *_: object) -> None:
        """End the process and its children, whatever they do."""
        self._kill()
        for reader in self._readers:
            reader.join(timeout=1)  # a child that was never seen may hold the pipe open
        reading = any(reader.is_alive() for reader in self._readers)
        outputs = () if reading else (self._process.stdout, self._process.stderr)
        for pipe in (self._process.stdin, *outputs):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()

    def _kill(self) -> None:
        self._meet_children()
        for one in self._family:
            with suppress(psutil.Error):
                one.kill()
        with suppress(OSError):  # those whose own parent has gone are still of its group
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _read_lines(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        while piece := pipe.readline(_LONGEST):
            self._lines.put(piece)
        self._lines.put(b"")

    def _read_tail(self) -> None:
        """Keep the end of what the backend prints, and take the rest off its hands."""
        assert self._process.stderr is not None
        descriptor = self._process.stderr.fileno()
        while piece := os.read(descriptor, 2**16):
            self._tail = (self._tail + piece)[-_TAIL:]

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield messages until the worker ends or has to be ended; then :meth:`mishap` says why.

        Raises Stopped when the run is given up.
        """
        while text := self._next():
            try:
                message = json.loads(text)
                message["type"]
            except (ValueError, TypeError, LookupError):
                self.disturbed()
                return
            yield message

    def disturbed(self) -> None:
        """Say that what was read is not what a worker says."""
        self._mishap = "crash", "something else than the suite wrote into the pipe to the parent"

    def _next(self) -> bytes:
        """Wait for a line; an empty one when there will be none, or none is waited for."""
        end = time.monotonic() + self.limit
        while not (self._too_large() or self._silent(end)):
            if self._stop.is_set():
                raise Stopped
            with suppress(queue.Empty):
                return self._lines.get(timeout=max(0.0, min(POLL, end - time.monotonic())))
            if self._process.poll() is not None and self._lines.empty():
                break  # a child of it may hold the pipe open
        return b""

    def _silent(self, end: float) -> bool:
        if time.monotonic() < end or not self._lines.empty():
            return False
        self._mishap = "timeout", f"no answer within {self.limit:g} seconds"
        return True

    def _too_large(self) -> bool:
        """Look at the memory from time to time; say whether it is beyond the limit."""
        if time.monotonic() < self._looked + POLL:
            return False
        self._looked = time.monotonic()
        used = self._used() / GIB
        if used <= self._memory:
            return False
        self._mishap = (
            "crash",
            f"its process used {used:.2g} GiB, the limit is {self._memory:g} GiB; "
            f"raise it with --memory",
        )
        return True

    def _used(self) -> int:
        """Return the bytes of memory that the worker and its children hold."""
        self._meet_children()
        used = 0
        for one in self._family:
            with suppress(psutil.Error):
                used += one.memory_info().rss if one.is_running() else 0
        return used

    def _meet_children(self) -> None:
        for one in list(self._family):
            with suppress(psutil.Error):
                self._family.update(one.children(recursive=True))

    def mishap(self) -> tuple[str, str]:
        """Return the status and the reason of a worker that did not finish."""
        if self._mishap is None:
            self._mishap = "crash", self._death()
        return self._mishap

    def _death(self) -> str:
        """Say how the process ended by itself."""
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "it closed the pipe to its parent"
        self._readers[1].join(timeout=LAST_WORDS)
        names = {one.value: one.name for one in signal.Signals}
        how = f"exit code {code}" if code >= 0 else names.get(-code, f"signal {-code}")
        printed = self._tail.decode("utf-8", "replace").splitlines()
        last = next((line(one, 200) for one in reversed(printed) if one.strip()), "")
        return f"the process ended with {how}" + (f" ({last})" if last else "")
