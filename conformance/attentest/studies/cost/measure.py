"""Measures backends in turn, round by round, so that what disturbs one disturbs all."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from threading import Event
from typing import TypeVar

from attentest.harness import process
from attentest.harness.errors import Unavailable
from attentest.harness.process import Isolation
from attentest.studies.comparison.compare import named
from attentest.studies.cost import participant as measured
from attentest.studies.cost.participant import TwoProcesses
from attentest.studies.cost.plan import Plan, Point
from attentest.studies.cost.result import Cost
from attentest.studies.cost.stand import Holding
from attentest.studies.cost.summing import Found, summed
from attentest.studies.participants import Failure, Participant, gather
from attentest.targets.resolve import Target

T = TypeVar("T")

AT_A_TIME = 2
"""Number of backends loaded or measured at a time; times are taken one by one."""

Progress = Callable[[int, int], None]
"""Called with the number of steps that are done, and of all."""


def measure(
    *targets: Target,
    plan: Plan | None = None,
    timeout: float = 120.0,
    memory: float = 4.0,
    progress: Progress | None = None,
) -> Cost:
    """Measure what `targets` cost, relative to the first of them.

    A string is a target as on the command line, and is measured in a process of its own, which has
    `timeout` seconds for every answer and may use `memory` GiB. Any other target, a backend or a
    function, class or instance, is measured in this process, without limits and without its peak
    memory. Those that fail are left out and reported.

    Raises :class:`~attentest.studies.cost.plan.BadPlan` for a plan that does not suit them all.
    """
    isolation = Isolation(timeout, memory, process.LOAD_LIMIT)
    with ExitStack() as stack:
        participants: dict[str, Participant] = {
            label: (
                stack.enter_context(TwoProcesses(one, isolation))
                if isinstance(one, str)
                else measured.local(one)
            )
            for label, one in named(targets).items()
        }
        return side_by_side(participants, plan or Plan(), progress, isolation.stop)


def side_by_side(
    participants: Mapping[str, Participant],
    plan: Plan,
    progress: Progress | None = None,
    stop: Event | None = None,
) -> Cost:
    """Measure the backends in `participants`, by what they are called.

    `stop` is set when something interrupts it.
    """
    trial = _Trial(dict(participants), progress, stop or Event())
    trial.load()
    if trial.found:
        trial.fit(plan)
        trial.weigh()
        trial.take_times()
    return summed(trial.plan or plan, trial.found, trial.failures)


def rotated(names: Sequence[str], number: int) -> list[str]:
    """Return `names` in the order of round `number`: another begins each time."""
    start = number % len(names) if names else 0
    return [*names[start:], *names[:start]]


class _Trial:
    """Backends on their way through a plan; one that fails leaves it, with the reason."""

    def __init__(
        self, participants: dict[str, Participant], progress: Progress | None, stop: Event
    ) -> None:
        self._participants = participants
        self._stop = stop
        self._progress = progress or (lambda done, total: None)
        self._done = 0
        self.plan: Plan | None = None
        self.found: dict[str, Found] = {}
        self.failures: list[Failure] = []

    def load(self) -> None:
        """Load all, some at a time."""
        facts = self._each(measured.facts)
        self.found = {name: Found(one) for name, one in facts.items()}

    def fit(self, plan: Plan) -> None:
        """Fit the plan to all that could be loaded, and leave out those without its component."""
        self.plan = plan.fitted({name: one.facts for name, one in self.found.items()})
        for name, one in list(self.found.items()):
            if self.plan.component not in one.facts.components:
                self._leave(Failure(name, f"it provides no {self.plan.component}", loaded=True))

    @property
    def _fitted(self) -> Plan:
        assert self.plan is not None  # nothing is measured before
        return self.plan

    def weigh(self) -> None:
        """Ask all what they hold and need at every point; what else goes on does not matter."""
        for name, held in self._each(self._holdings).items():
            self.found[name].held.update(held)

    def _holdings(self, participant: Participant) -> dict[Point, Holding]:
        held = {}
        for point in self._fitted.points:
            held[point] = measured.holding(participant, self._fitted, point)
            self._step()
        return held

    def take_times(self) -> None:
        """Measure times at every point: in each round every backend once, another one first."""
        for point in self._fitted.points:
            self._each(partial(measured.prepare, plan=self._fitted, point=point))
            for number in range(self._fitted.repeat):
                for which in self._fitted.passes:
                    self._round(point, which, number)
                self._step()

    def _round(self, point: Point, which: str, number: int) -> None:
        for name in rotated(list(self.found), number):
            found = self.found[name]
            if which not in found.held[point].flops:
                continue
            try:
                sample = measured.sample(self._participants[name], which)
            except Unavailable as failure:
                self._leave(Failure.of(name, failure))
            else:
                found.samples.setdefault((point, which), []).append(sample)

    def _step(self) -> None:
        points = len(self._fitted.points)
        self._done += 1
        self._progress(self._done, points * (self._fitted.repeat + len(self._participants)))

    def _each(self, action: Callable[[Participant], T]) -> dict[str, T]:
        """Return what came of `action` for each backend that is left, some at a time."""
        lost = {one.backend for one in self.failures}
        left = {name: one for name, one in self._participants.items() if name not in lost}
        answers, failures = gather(
            {name: partial(action, one) for name, one in left.items()},
            workers=AT_A_TIME,
            stop=self._stop,
        )
        for failure in failures:
            self._leave(failure)
        return answers

    def _leave(self, failure: Failure) -> None:
        self.found.pop(failure.backend, None)
        self.failures.append(failure)
