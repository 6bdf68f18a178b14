"""Measures backends in turn, round by round, so that what disturbs one disturbs all."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event
from typing import TypeVar

from attentest.harness.errors import Refused
from attentest.studies.comparison import Failure
from attentest.studies.comparison.compare import called
from attentest.studies.cost.apart import Apart
from attentest.studies.cost.plan import Plan, Point
from attentest.studies.cost.result import Cost
from attentest.studies.cost.stand import Measured, Stand
from attentest.studies.cost.summing import Found, summed
from attentest_spec import Backend, UnknownName
from attentest_spec.registry import LoadFailure

T = TypeVar("T")

AT_A_TIME = 2
"""How many are loaded, or asked for what they need, at a time; times are taken one by one."""

Told = Callable[[int, int], None]
"""Told how many steps are done, and of how many."""


def measure(
    *backends: Backend | str,
    plan: Plan | None = None,
    timeout: float = 120.0,
    memory: float = 4.0,
    told: Told | None = None,
) -> Cost:
    """Measure what `backends` cost, relative to the first of them.

    A string is a target as on the command line, and is measured in a process of its own, which has
    `timeout` seconds for every answer and may use `memory` GiB. Any other backend is measured in
    this process, where its peak memory cannot be told. Those that fail are left out and told.

    Raises :class:`~attentest.studies.cost.plan.BadPlan` for a plan that does not suit them all.
    """
    stop = Event()
    with ExitStack() as stack:
        stands: dict[str, Measured] = {
            label: (
                stack.enter_context(Apart(one, timeout, memory, stop))
                if isinstance(one, str)
                else Stand(one)
            )
            for label, one in zip(called(backends), backends, strict=True)
        }
        return side_by_side(stands, plan or Plan(), told, stop)


def side_by_side(
    stands: Mapping[str, Measured],
    plan: Plan,
    told: Told | None = None,
    stop: Event | None = None,
) -> Cost:
    """Measure the backends on `stands`, by what they are called.

    `stop` is set when something interrupts it.
    """
    trial = _Trial(dict(stands), told, stop or Event())
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

    def __init__(self, stands: dict[str, Measured], told: Told | None, stop: Event) -> None:
        self._stands = stands
        self._stop = stop
        self._told = told or (lambda done, total: None)
        self._done = 0
        self.plan: Plan | None = None
        self.found: dict[str, Found] = {}
        self.failures: list[Failure] = []

    def load(self) -> None:
        """Load all, some at a time."""
        facts = self._each(lambda name: self._stands[name].facts())
        self.found = {name: Found(one) for name, one in facts.items()}

    def fit(self, plan: Plan) -> None:
        """Fit the plan to all that could be loaded, and leave out those without its component."""
        self.plan = plan.fitted({name: one.facts for name, one in self.found.items()})
        for name, one in list(self.found.items()):
            if self.plan.component not in one.facts.components:
                self._leave(name, Refused(f"it provides no {self.plan.component}"))

    @property
    def _fitted(self) -> Plan:
        assert self.plan is not None  # nothing is measured before
        return self.plan

    def weigh(self) -> None:
        """Ask all what they hold and need at every point; what else goes on does not matter."""
        self._each(self._weigh)

    def _weigh(self, name: str) -> None:
        for point in self._fitted.points:
            self.found[name].held[point] = self._stands[name].holding(self._fitted, point)
            self._step()

    def take_times(self) -> None:
        """Measure times at every point: in each round every backend once, another one first."""
        for point in self._fitted.points:
            self._each(lambda name: self._stands[name].prepare(self._fitted, point))  # noqa: B023
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
                sample = self._stands[name].sample(which)
            except Refused as failure:
                self._leave(name, failure)
            else:
                found.samples.setdefault((point, which), []).append(sample)

    def _step(self) -> None:
        points = len(self._fitted.points)
        self._done += 1
        self._told(self._done, points * (self._fitted.repeat + len(self._stands)))

    def _each(self, action: Callable[[str], T]) -> dict[str, T]:
        """Return what came of `action` for each backend that is left, some at a time."""
        found = {}
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            names = [name for name in self._stands if not self._failed(name)]
            asked = {name: pool.submit(action, name) for name in names}
            try:
                for name, future in asked.items():
                    try:
                        found[name] = future.result()
                    except (LoadFailure, UnknownName, Refused) as failure:
                        self._leave(name, failure)
            except BaseException:  # Ctrl-C waits for none of them
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return found

    def _failed(self, name: str) -> bool:
        return any(one.backend == name for one in self.failures)

    def _leave(self, name: str, failure: Exception) -> None:
        self.found.pop(name, None)
        self.failures.append(Failure(name, str(failure), isinstance(failure, Refused)))
