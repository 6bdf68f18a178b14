"""More processes for one backend: they judge parts of a long plan ahead of the first process.

Only a clause that holds is taken from them. The first process judges all others again, in the order
of the plan, since the search for a likely cause begins with those of earlier failures: the verdicts
are the same for any number of processes.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from attentest.harness.errors import Stopped, Unavailable
from attentest.harness.messages import Event, disturbed
from attentest.harness.starting import POLL
from attentest.results.plan import Plan
from attentest.results.verdict import Status, Verdict
from attentest.studies.participants import Remote
from attentest_spec.registry import LoadFailure

WORTH = 150
"""Clauses that are worth a process: most backends load in the time that a hundred of them take."""

HOLDS = (Status.PASS, Status.DEVIATION, Status.ABSENT)

Reader = Callable[[str, Mapping[str, Any]], Verdict]
"""Makes the verdict about a clause of the fields that a process sent."""


def processes_for(plan: Plan, processes: int) -> int:
    """Return how many of `processes` a plan for one backend is divided among.

    It is one on another device than the CPU, whose memory the first may have reserved, and for code
    that is no backend: reading it takes long, and it provides few components.
    """
    if plan.device != "cpu" or plan.reading is not None:
        return 1
    return max(1, min(processes, len(plan.clauses) // WORTH))


_Futures = dict[str, Future[Verdict | None]]


class Ahead:
    """The processes that judge ahead, `count` of them; the `with` statement ends them.

    Neighbours in the plan, which take about the same time, go to different processes. The first of
    the parts is not among them: it is left for the process that takes the verdicts of the others.
    """

    def __init__(
        self, remote: Callable[[threading.Event], Remote], plan: Plan, count: int, read: Reader
    ) -> None:
        """Divide the plan; `remote` makes a process that an event stops."""
        self._remote = remote
        self._end = threading.Event()
        self._plan = replace(plan, diagnose=False, shrink=False)
        self._parts = [plan.clauses[number :: count + 1] for number in range(1, count + 1)]
        self._read = read
        self._pool = ThreadPoolExecutor(max(1, count))
        self._verdicts: _Futures = {}

    def __enter__(self) -> "Ahead":
        """Wait for :meth:`start`."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self._end.set()
        self._pool.shutdown()

    def start(self) -> None:
        """Start the processes, unless that was done before."""
        parts, self._parts = self._parts, []
        for part in parts:
            futures: _Futures = {clause: Future() for clause in part}
            self._verdicts |= futures
            self._pool.submit(self._judge, futures)

    def before(self, clauses: tuple[str, ...]) -> tuple[str, ...]:
        """Return the beginning of `clauses`, up to the first of which a verdict is to come."""
        to_come = (number for number, one in enumerate(clauses) if one in self._verdicts)
        return clauses[: next(to_come, len(clauses))]

    def take(self, clause: str, stop: threading.Event) -> Verdict | None:
        """Wait for the verdict of `clause`; None where it is to be judged by the one who asks.

        Raises Stopped once `stop` is set.
        """
        future = self._verdicts.pop(clause, None)
        while future:
            if stop.is_set():
                raise Stopped("the command was interrupted")
            with suppress(TimeoutError):
                return future.result(POLL)
        return None

    def _judge(self, futures: _Futures) -> None:
        """Let one process judge a part; there is no verdict from where it is lost."""
        remote = self._remote(self._end)
        try:
            with suppress(LoadFailure, Unavailable, Stopped), remote.process() as worker:
                worker.call(
                    "judge",
                    listen=partial(self._hear, futures),
                    target=remote.targets[0],
                    plan=replace(self._plan, clauses=tuple(futures)).as_dict(),
                    fail_fast=False,
                )
        finally:
            for future in futures.values():
                if not future.done():
                    future.set_result(None)

    def _hear(self, futures: _Futures, event: Event) -> None:
        """Hand on the verdict of an event, if it holds."""
        match event:
            case {"step": "verdict", "clause": clause, **fields} if clause in futures:
                if futures[clause].done():
                    raise disturbed()
                verdict = self._read(clause, fields)
                futures[clause].set_result(verdict if verdict.status in HOLDS else None)
