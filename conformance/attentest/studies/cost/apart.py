"""A backend that is measured in a process of its own."""

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from attentest.harness.description import Facts
from attentest.harness.errors import Refused
from attentest.harness.process import Worker
from attentest.studies.cost.memory import GIVING_BACK
from attentest.studies.cost.plan import Plan, Point
from attentest.studies.cost.stand import Holding, Sample
from attentest_spec.registry import LoadFailure


class Apart:
    """The backend of `target`, which has `limit` seconds for each answer and `memory` GiB.

    It has two processes, one after the other: one that shows what memory it needs, one that is as
    fast as it can be.
    """

    def __init__(
        self, target: str, limit: float, memory: float, stop: threading.Event | None = None
    ) -> None:
        """Start nothing yet; what is started ends with the `with` statement.

        Once `stop` is set, whoever waits for an answer is given Stopped.
        """
        self._target = target
        self._limit = limit
        self._memory = memory
        self._stop = stop or threading.Event()
        self._environment: Mapping[str, str] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> "Apart":
        """Return it; a process starts when something is asked."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, whatever it does."""
        self._stack.close()

    def facts(self) -> Facts:
        """Load it; see :class:`~attentest.studies.cost.stand.Measured`."""
        return Facts.read(self._in(GIVING_BACK))

    def holding(self, plan: Plan, point: Point) -> Holding:
        """See :class:`~attentest.studies.cost.stand.Measured`."""
        self._in(GIVING_BACK)
        return Holding(**self._asked(asked="holding", plan=plan.as_dict(), point=asdict(point)))

    def prepare(self, plan: Plan, point: Point) -> None:
        """See :class:`~attentest.studies.cost.stand.Measured`."""
        self._in({})
        self._asked(asked="prepare", plan=plan.as_dict(), point=asdict(point))

    def sample(self, which: str) -> Sample:
        """See :class:`~attentest.studies.cost.stand.Measured`."""
        return Sample(**self._asked(asked="sample", which=which))

    def _in(self, environment: Mapping[str, str]) -> Mapping[str, Any]:
        """Return what is told by the process that has this environment; start it if it is not."""
        if environment != self._environment:
            self._stack.close()
            self._environment = environment
            worker = Worker(
                "attentest.studies.cost.worker",
                {"target": self._target},
                self._memory,
                self._stop,
                environment,
            )
            self._worker = self._stack.enter_context(worker)
            self._messages = self._worker.messages()
            self._told = self._next("loaded")
        return self._told

    def _asked(self, **question: Any) -> Any:
        self._worker.limit = self._limit
        self._worker.ask(question)
        return self._next("answer")["answer"]

    def _next(self, kind: str) -> dict[str, Any]:
        """Return the next message, which has to be of this `kind`."""
        message: dict[str, Any] = next(self._messages, {})
        match message:
            case {"type": "failed", "reason": reason}:
                raise LoadFailure(str(reason))
            case {"type": "refused", "reason": reason}:
                raise Refused(str(reason))
            case {"type": told} if told == kind:
                return message
            case {"type": _}:
                self._worker.disturbed()
        reason = self._worker.mishap()[1]
        self._stack.close()  # what hangs would disturb those that are still measured
        self._environment = None
        raise Refused(reason)
