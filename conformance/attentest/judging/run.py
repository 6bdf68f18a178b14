"""Runs a plan over several backends, each in worker processes of its own.

A worker that hangs or takes too much memory is killed, one that dies is replaced; the clause it was
at gets the verdict `timeout` or `crash`, and the next worker goes on behind it. After three of
these the remaining clauses get the same verdict untried.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from attentest.harness.process import LOAD_LIMIT, Worker
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Description, Run
from attentest.results.verdict import Status, Verdict

PATIENCE = 3
"""Timeouts and crashes after which a backend's remaining clauses are not tried."""


Listener = Callable[[BackendRun, Verdict | None], None]
"""Called with each verdict as it comes, and with None once a backend is loaded or has failed to."""


def run(
    targets: Sequence[str],
    plan: Plan,
    *,
    workers: int = 0,
    listener: Listener = lambda judged, verdict: None,
) -> Run:
    """Judge every target under `plan`, at most `workers` at a time (as many as there are cores).

    Whatever interrupts it, Ctrl-C or an error of the `listener`, ends every worker first.
    """
    lock = threading.Lock()
    stop = threading.Event()

    def one_at_a_time(judged: BackendRun, verdict: Verdict | None) -> None:
        with lock:
            listener(judged, verdict)

    def judge(target: str) -> BackendRun:
        return _Trial(BackendRun(target), plan, one_at_a_time, stop).run()

    with ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1) as pool:
        try:
            futures = [pool.submit(judge, target) for target in targets]
            return Run.of(plan, [future.result() for future in futures])
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@dataclass
class _Trial:
    """One target on its way through the plan, from worker to worker."""

    result: BackendRun
    plan: Plan
    listener: Listener
    stop: threading.Event
    loaded: bool = False  # by the worker of the moment
    described: bool = False  # by any worker
    found: Verdict | None = None  # of the clause that is next, its diagnosis under way

    @property
    def rest(self) -> tuple[str, ...]:
        """The clauses that have no verdict yet."""
        return self.plan.clauses[len(self.result.verdicts) :]

    def run(self) -> BackendRun:
        """Judge to the end, replacing workers that hang or die."""
        for _ in range(PATIENCE):
            mishap = self._one_worker()
            if self.result.failure:
                self.listener(self.result, None)
            if mishap is None:
                return self.result
            status, reason = mishap
            self._keep(self._undiagnosed(reason) or self._unjudged(status, reason))
            if not self.rest:
                return self.result
        while self.rest:
            self._keep(self._unjudged(status, f"not tried after {PATIENCE} timeouts or crashes"))
        return self.result

    def _unjudged(self, status: str, message: str) -> Verdict:
        return Verdict(self.result.target, self.rest[0], Status(status), message)

    def _undiagnosed(self, reason: str) -> Verdict | None:
        """Return the verdict that was reached before the worker was lost, if there was one."""
        note = f"the likely cause was not found: {reason}"
        return replace(self.found, notes=(*self.found.notes, note)) if self.found else None

    def _keep(self, verdict: Verdict) -> None:
        self.found = None
        self.result.verdicts.append(verdict)
        self.listener(self.result, verdict)

    def _one_worker(self) -> tuple[str, str] | None:
        """Let one worker judge the rest; return the mishap that costs a verdict, if any."""
        self.loaded = False
        plan = replace(self.plan, clauses=self.rest).as_dict()
        job = {"target": self.result.target, "plan": plan}
        with Worker("attentest.judging.worker", job, self.plan.memory, self.stop) as worker:
            for message in worker.messages():
                if message["type"] == "failed":
                    return self._not_loaded("crash", str(message.get("reason")))
                if not self._take(message, worker):
                    worker.disturbed()
                    break
            if self.result.measured:
                return None
            status, reason = worker.mishap()
        if not self.loaded:
            target = self.result.target
            return self._not_loaded(status, f"The backend {target} could not be loaded: {reason}.")
        if self.rest:
            return status, reason
        self.result.measured = {"measuring": f"not finished: {reason}"}
        return None

    def _not_loaded(self, status: str, reason: str) -> tuple[str, str] | None:
        """Keep why it was not loaded; that is a mishap where an earlier worker had loaded it."""
        if self.described:
            return status, f"replacing its process failed: {reason}"
        self.result.failure = reason
        return None

    def _take(self, message: dict[str, Any], worker: Worker) -> bool:
        """Take in one message; say whether it is one that a worker sends at this point."""
        match message:
            case {"type": "loaded", **facts} if not self.loaded:
                return self._describe(facts)
            case {"type": "start", "clause": clause} if clause in self.rest[:1]:
                worker.limit = self.plan.limit
            case {"type": "found", "clause": clause, **told} if clause in self.rest[:1]:
                self.found, worker.limit = self._read(clause, told), LOAD_LIMIT
                return self.found is not None
            case {"type": "verdict", "clause": clause, **told} if clause in self.rest[:1]:
                verdict, worker.limit = self._read(clause, told), self.plan.limit
                if verdict is None:
                    return False
                self._keep(verdict)
            case {"type": "measured", "statements": dict(statements)} if not self.rest:
                self.result.measured = statements
            case _:
                return False
        return True

    def _read(self, clause: str, told: dict[str, Any]) -> Verdict | None:
        """Read a verdict; None where it is not one."""
        try:
            return Verdict.from_dict({**told, "clause": clause, "backend": self.result.target})
        except (TypeError, ValueError, LookupError, AttributeError):
            return None

    def _describe(self, facts: Mapping[str, Any]) -> bool:
        """Take in what the backend declares; say whether that is a description."""
        try:
            description = Description.from_dict(facts)
        except (TypeError, ValueError, LookupError):
            return False
        self.loaded = True
        if not self.described:
            self.described = True
            self.result.description = description
            self.listener(self.result, None)
        return True
