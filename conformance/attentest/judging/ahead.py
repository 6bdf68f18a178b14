"""More processes for one backend: they judge the end of a long plan ahead of the first process.

Only a clause that holds is taken from them. The first process judges all others again, in the order
of the plan, since the search for a likely cause begins with those of earlier failures: the verdicts
are the same for any number of processes.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any

from attentest.harness.errors import Stopped, Unavailable
from attentest.harness.messages import Event, disturbed
from attentest.harness.starting import POLL
from attentest.results.plan import Plan
from attentest.results.verdict import Status, Verdict
from attentest.studies.participants import Remote
from attentest_spec.registry import LoadFailure

WORTH = 75
"""Clauses that are worth a process: a backend loads in the time that twenty of them take."""

CHUNK = 8
"""Most clauses that a process takes at a time, where several judge one backend."""

HOLDS = (Status.PASS, Status.DEVIATION, Status.ABSENT)

Reader = Callable[[str, Mapping[str, Any]], Verdict]
"""Makes the verdict about a clause of the fields that a process sent."""

_Futures = dict[str, Future[Verdict | None]]


def divisible(plan: Plan) -> bool:
    """Return whether a plan for one backend may be divided among several processes.

    Not a short one, not on another device than the CPU, whose memory the first process may have
    reserved, and not for code that is no backend: reading it takes long, and it provides few
    components.
    """
    return plan.device == "cpu" and plan.reading is None and len(plan.clauses) >= 2 * WORTH


class Ahead:
    """The clauses of a plan for one backend, which the first process and its helpers take.

    The first process takes them from the front, helpers from the end. At the end of a `with`
    statement all helpers end.
    """

    def __init__(
        self,
        remote: Callable[[threading.Event], Remote],
        plan: Plan,
        read: Reader,
        *,
        alone: bool = False,
    ) -> None:
        """Divide the plan, unless the first process is `alone`.

        `remote` makes a process that an event stops.
        """
        self._remote = remote
        self._plan = replace(plan, diagnose=False, shrink=False)
        self._left = list(plan.clauses)
        self._read = read
        self._verdicts: _Futures = {}
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._open = False
        self._alone = alone
        self._helpers = 0

    def __enter__(self) -> "Ahead":
        """Wait for :meth:`open`."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the helpers."""
        self._end.set()

    @property
    def ended(self) -> bool:
        """Whether all is judged, or is to be judged no more."""
        return self._end.is_set()

    def open(self) -> None:
        """Let helpers begin."""
        self._open = True

    def share(self) -> int:
        """Return how many clauses one more helper would find; 0 where it is not worth its start."""
        if self._alone or not self._open or self.ended:
            return 0
        found = len(self._left) // (self._helpers + 2)
        return found if found >= WORTH else 0

    def own(self, clauses: Sequence[str]) -> tuple[str, ...]:
        """Return the beginning of `clauses`, for the first process to judge.

        The first of them is its own, and so are others that no helper has taken.
        """
        with self._lock:
            free = takewhile(lambda one: one not in self._verdicts, clauses[1:])
            asked = (clauses[0], *free)[: len(clauses) if self._alone else self._chunk]
            self._left = [one for one in self._left if one not in asked]
        return asked

    @property
    def _chunk(self) -> int:
        """The number of clauses to take: few in the end, so that no process waits for another."""
        return min(CHUNK, len(self._left) // 16 + 1)

    def take(self, clause: str, stop: threading.Event) -> Verdict | None:
        """Wait for the verdict of `clause`; None where it is to be judged by the one who asks.

        Raises Stopped once `stop` is set.
        """
        with self._lock:
            future = self._verdicts.get(clause)
        while future:
            if stop.is_set():
                raise Stopped("the command was interrupted")
            with suppress(TimeoutError):
                return future.result(POLL)
        return None

    def help(self) -> None:
        """Let one more process judge clauses from the end, until none is left or it is lost.

        Where one is lost, the first process judges the rest alone.
        """
        with self._lock:
            self._helpers += 1
        remote = self._remote(self._end)
        try:
            with remote.process() as worker:
                while futures := self._claimed():
                    self._judge(remote, worker.call, futures)
        except Stopped:
            pass
        except (LoadFailure, Unavailable):
            self._alone = True
        finally:
            with self._lock:
                self._helpers -= 1

    def _claimed(self) -> _Futures:
        with self._lock:
            taken = self._left[-self._chunk :]
            found: _Futures = {clause: Future() for clause in taken}
            self._left = self._left[: -len(taken)] if taken else []
            self._verdicts |= found
        return found

    def _judge(self, remote: Remote, call: Callable[..., Any], futures: _Futures) -> None:
        """Let a process judge a chunk; there is no verdict from where it is lost."""
        try:
            call(
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


def help_others(trials: Sequence[Ahead], stop: threading.Event) -> None:
    """Help the one with the most clauses left, again and again, until all have ended."""
    while not stop.is_set() and not all(one.ended for one in trials):
        if (busiest := max(trials, key=Ahead.share)).share():
            busiest.help()
        else:
            stop.wait(POLL)
