"""A backend that is measured: its description, what it holds, and how long a call takes."""

from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any

from attentest.harness.description import Facts, described
from attentest.harness.errors import ProcessFailure
from attentest.harness.messages import Listener, Methods
from attentest.harness.process import Child, Isolation
from attentest.studies.cost.memory import GIVING_BACK
from attentest.studies.cost.plan import Plan, Point
from attentest.studies.cost.stand import Holding, Sample, Stand
from attentest.studies.participants import Local, Participant, Remote, ask, on_target
from attentest_spec import Backend


def facts(participant: Participant) -> Facts:
    """Return what it states of itself."""
    return ask(participant, "facts", Facts.read)


def holding(participant: Participant, plan: Plan, point: Point) -> Holding:
    """Return what the component of `plan` holds and needs at `point`."""
    return ask(
        participant,
        "holding",
        lambda answer: Holding(**answer),
        plan=plan.as_dict(),
        point=asdict(point),
    )


def prepare(participant: Participant, plan: Plan, point: Point) -> None:
    """Build the component of `plan` at `point`, and call it until it is warm."""
    participant.call("prepare", plan=plan.as_dict(), point=asdict(point))


def sample(participant: Participant, which: str) -> Sample:
    """Measure the time of a pass of what was prepared."""
    return ask(participant, "sample", lambda answer: Sample(**answer), which=which)


def local(backend: Backend) -> Local:
    """Return `backend` as a participant in this process, where its memory cannot be measured."""
    return Local(methods(backend))


def methods(backend: Backend, *, alone: bool = False) -> Methods:
    """Return what a participant answers; one that is `alone` in its process shows its memory."""
    stand = Stand(backend, alone=alone)
    return {
        "facts": partial(described, backend),
        "holding": lambda plan, point: asdict(stand.holding(Plan.from_dict(plan), Point(**point))),
        "prepare": lambda plan, point: stand.prepare(Plan.from_dict(plan), Point(**point)),
        "sample": lambda which: asdict(stand.sample(which)),
    }


METHODS = on_target(partial(methods, alone=True))


class TwoProcesses:
    """The backend of a target as a participant in two processes, one after the other.

    The first shows what memory it needs, the second is as fast as it can be. A process ends when
    the other is needed, when it is lost, and with the `with` statement.
    """

    def __init__(self, target: str, isolation: Isolation) -> None:
        self._remotes = {
            memory: Remote(__name__, (target,), isolation, environment=environment)
            for memory, environment in ((True, GIVING_BACK), (False, dict[str, str]()))
        }
        self._process = ExitStack()
        self._child: Child | None = None
        self._memory = False

    def __enter__(self) -> "TwoProcesses":
        """Return it; a process starts when something is asked."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, whatever it does."""
        self._close()

    def call(self, method: str, listen: Listener | None = None, **arguments: Any) -> Any:
        """See :class:`~attentest.studies.participants.Participant`."""
        try:
            child = self._started(memory=method in ("facts", "holding"))
            return child.call(method, listen, **arguments)
        except ProcessFailure:
            self._close()  # what hangs would disturb those that are still measured
            raise

    def _started(self, *, memory: bool) -> Child:
        """Return the process for `memory` or for times; start it where it does not run."""
        if self._child is None or memory != self._memory:
            self._close()
            self._child = self._process.enter_context(self._remotes[memory].process())
            self._memory = memory
        return self._child

    def _close(self) -> None:
        self._child = None
        self._process.close()
