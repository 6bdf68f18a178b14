"""Runs a plan over several backends, each in worker processes of its own.

A worker that hangs is killed, one that dies is replaced; the clause it was at gets the verdict
`timeout` or `crash`, and the next worker goes on behind it. After three of these the remaining
clauses get the same verdict untried.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from attentest.outcome import Verdict
from attentest.plan import Plan

PATIENCE = 3
"""Timeouts and crashes after which a backend's remaining clauses are not tried."""

LOAD_LIMIT = 120.0
"""Seconds a backend may take to be imported."""


@dataclass
class Judged:
    """What came out for one target: what the backend says of itself, and its verdicts.

    `measured` holds statements that are told and not judged; `failure` is the reason why it could
    not be loaded, "" where it was.
    """

    target: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    measured: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""


Listener = Callable[[Judged, Verdict | None], None]
"""Called with each verdict as it comes, and with None once a backend is loaded or has failed to."""


def run(
    targets: Sequence[str],
    plan: Plan,
    *,
    workers: int = 0,
    listener: Listener = lambda judged, verdict: None,
) -> list[Judged]:
    """Judge every target under `plan`, at most `workers` at a time (as many as there are cores)."""
    lock = threading.Lock()

    def one_at_a_time(judged: Judged, verdict: Verdict | None) -> None:
        with lock:
            listener(judged, verdict)

    at_once = workers or os.cpu_count() or 1
    with ThreadPoolExecutor(max_workers=max(1, at_once)) as pool:
        return list(pool.map(lambda target: _judged(target, plan, one_at_a_time), targets))


def _judged(target: str, plan: Plan, listener: Listener) -> Judged:
    """Judge one target to the end, replacing workers that hang or die."""
    result = Judged(target)
    mishaps = 0
    while len(result.verdicts) < len(plan.clauses):
        rest = plan.clauses[len(result.verdicts) :]
        ended = _one_worker(result, replace(plan, clauses=rest), listener)
        if result.failure:
            listener(result, None)
        if ended is None or result.failure:
            break
        status, message = ended
        mishaps += 1
        _add(result, listener, status, message, plan)
        if mishaps == PATIENCE:
            _give_up(result, listener, status, plan)
    return result


def _give_up(result: Judged, listener: Listener, status: str, plan: Plan) -> None:
    while len(result.verdicts) < len(plan.clauses):
        _add(result, listener, status, f"not tried after {PATIENCE} timeouts or crashes", plan)


def _add(result: Judged, listener: Listener, status: str, message: str, plan: Plan) -> None:
    clause = plan.clauses[len(result.verdicts)]
    verdict = Verdict(result.target, clause, status, message)
    result.verdicts.append(verdict)
    listener(result, verdict)


def _one_worker(result: Judged, plan: Plan, listener: Listener) -> tuple[str, str] | None:
    """Let one worker judge `plan`; return the mishap it ended in, or None when it finished."""
    done = len(result.verdicts)
    with Worker(result.target, plan) as worker:
        for message in worker.messages():
            match message.pop("type"):
                case "failed":
                    result.failure = str(message["reason"])
                    return None
                case "loaded":
                    result.facts = message
                    listener(result, None)
                case "start":
                    worker.limit = plan.limit
                case "verdict":
                    verdict = replace(Verdict.from_dict(message), backend=result.target)
                    result.verdicts.append(verdict)
                    listener(result, verdict)
                case "measured":
                    result.measured = message["statements"]
        if len(result.verdicts) == done + len(plan.clauses):
            return None
        mishap = worker.mishap()
    if not result.facts:
        result.failure = f"The backend {result.target} could not be loaded: {mishap[1]}."
        return None
    return mishap


class Worker:
    """One worker process and the pipes to it."""

    def __init__(self, target: str, plan: Plan) -> None:
        self._job = json.dumps({"target": target, "plan": plan.as_dict()})
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._tail: deque[str] = deque(maxlen=5)
        self._hung = False
        self.limit = LOAD_LIMIT

    def __enter__(self) -> "Worker":
        """Start the process and the threads that read from it."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "attentest.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )
        self._readers = [
            threading.Thread(target=reader, daemon=True)
            for reader in (self._read_lines, self._read_tail)
        ]
        for reader in self._readers:
            reader.start()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(self._job.encode() + b"\n")
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # it died at birth; the exit code will be told
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join(timeout=1)  # a child of the backend may hold the pipe open
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None and not any(reader.is_alive() for reader in self._readers):
                pipe.close()

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.decode("utf-8", "replace"))
        self._lines.put(None)

    def _read_tail(self) -> None:
        """Keep the last lines of what the backend prints, in pieces of bounded size."""
        assert self._process.stderr is not None
        while piece := self._process.stderr.readline(2000):
            self._tail.append(piece.decode("utf-8", "replace").strip())

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield messages until the worker ends or is silent for longer than the limit."""
        while True:
            try:
                line = self._lines.get(timeout=self.limit)
            except queue.Empty:
                self._hung = True
                return
            if line is None:
                return
            yield json.loads(line)

    def mishap(self) -> tuple[str, str]:
        """Return the status and the reason of a worker that did not finish."""
        if self._hung:
            return "timeout", f"no answer within {self.limit:g} seconds"
        code = self._process.wait()
        how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        last = next((line for line in reversed(self._tail) if line), "")
        return "crash", f"the process ended with {how}" + (f" ({last[:200]})" if last else "")
