"""The stand on which one backend is measured: how long a call takes, what memory it needs."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

import numpy as np
import psutil

from attentest.harness.description import Facts
from attentest.harness.errors import Absent, BackendError, Unavailable
from attentest.harness.subject import Answer, guarded
from attentest.studies.comparison.inputs import inputs
from attentest.studies.cost.clock import seconds
from attentest.studies.cost.memory import peak
from attentest.studies.cost.plan import BOTH, FORWARD, Plan, Point
from attentest_spec import Backend, Counted, Part
from attentest_spec.contract import Input
from attentest_spec.parameters import tied
from attentest_spec.setting import Array

WARM_UP = 2
"""Calls that count for nothing: what a framework does once, it does there."""

SHORTEST = 0.002
"""Seconds that one measurement takes at least; shorter calls are repeated within it."""

MOST = 1000
"""Calls that one measurement makes at most."""

YARDSTICK = 256
"""Rows of the square matrices whose product is the yardstick."""

PEAKS = 3
"""Number of measurements of a peak; the median counts."""


@dataclass(frozen=True)
class Holding:
    """Parameters, operations and memory of a component at one point.

    `parameters` are the numbers it is trained by, tied ones counted once. `flops` are those that it
    counts, by pass; the passes that it has are the names in it, with None where it cannot count.
    `peaks` are the bytes of memory that a pass needs besides, measured several times; empty where
    they cannot be told.
    """

    parameters: int | None
    flops: Mapping[str, int | None]
    peaks: Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Sample:
    """One measurement: seconds a call, and seconds that one operation of the yardstick takes."""

    seconds: float
    yardstick: float | None


class Stand:
    """A backend in this process; all methods raise Unavailable where it fails."""

    def __init__(self, backend: Backend, *, alone: bool = False) -> None:
        """Measure `backend`; its memory only where it is `alone` in the process."""
        self._backend = backend
        self._alone = alone
        self._calls: dict[str, Callable[[], Any]] = {}
        self._often: dict[str, int] = {}
        self._square: Array | None = None

    def facts(self) -> Facts:
        """Return what the backend states of itself."""
        return Facts.of(self._backend)

    def holding(self, plan: Plan, point: Point) -> Holding:
        """Return what the component of `plan` holds and needs at `point`."""
        part = self._built(plan, point)
        twins = tied(plan.component, plan.sizes(point.width), self.facts().choices)
        with _doing(f"counting the operations of {plan.component}"):
            flops = {which: _flops(part, *self._given, which) for which in self._calls}
        with _doing(f"counting the parameters of {plan.component}"):
            parameters = _parameters(part, twins)
        return Holding(parameters, flops, self._peaks())

    def _built(self, plan: Plan, point: Point) -> Part:
        """Build the component, and call it once to see which passes it has."""
        self._calls = {}
        if plan.precision not in self._backend.limits.precisions:
            raise Unavailable(f"it does not compute in {plan.precision}")
        with _doing(f"building {plan.component}"):
            sizes = plan.sizes(point.width)
            part = self._backend.build(plan.component, sizes, precision=plan.precision)
        given = inputs(plan.example(point), plan.component)
        with _doing(f"calling {plan.component}"):
            result = part(*given)
        output = np.asarray(Answer.of(result).output)
        self._calls[FORWARD] = lambda: part(*given)
        cotangent = np.ones_like(output)
        if "gradient" in part.capabilities and output.dtype.kind in "fV":
            self._calls[BOTH] = lambda: part.vjp(given, cotangent)
        self._given = given, cotangent
        return part

    def _peaks(self) -> dict[str, list[int]]:
        """Measure every pass several times; nothing where others than this process may work."""
        if not self._alone or psutil.Process().children():
            return {which: [] for which in self._calls}
        gc.collect()
        gc.freeze()  # what is there by now need not be looked through again before each peak
        try:
            return {which: self._peaks_of(which) for which in self._calls}
        finally:
            gc.unfreeze()

    def _peaks_of(self, which: str) -> list[int]:
        with _doing(f"the pass {which}"):
            self._calls[which]()
            return [peak(self._calls[which]) for _ in range(PEAKS)]

    def prepare(self, plan: Plan, point: Point) -> None:
        """Build the component of `plan` at `point`, and call it until it is warm."""
        self._built(plan, point)
        self._square = _square(plan.precision)
        self._often = {which: self._warmed(which) for which in self._calls}

    def _warmed(self, which: str) -> int:
        """Call it until it is warm, and return how many calls one measurement needs."""
        with _doing(f"the pass {which}"):
            times = [seconds(self._calls[which]) for _ in range(WARM_UP)]
        # The shortest, for what is done once, as compiling is, would count as a call's time.
        return min(MOST, max(1, ceil(SHORTEST / max(min(times), 1e-9))))

    def sample(self, which: str) -> Sample:
        """Measure the time of a pass of what was prepared."""
        yardstick = None
        if self._square is not None:
            square = self._square
            square @ square  # the processor has done something else meanwhile
            yardstick = seconds(lambda: square @ square) / (2 * YARDSTICK**3)
        with _doing(f"the pass {which}"):
            often = self._often[which]
            return Sample(seconds(self._calls[which], often), yardstick)


def _square(precision: str) -> Array | None:
    """Return the matrix of the yardstick; None for precisions where its product is slow."""
    if precision not in ("float32", "float64"):
        return None
    rows = np.random.default_rng(0).normal(size=(YARDSTICK, YARDSTICK))
    return rows.astype(precision)


def _flops(part: Part, given: tuple[Input, ...], cotangent: Array, which: str) -> int | None:
    if not isinstance(part, Counted):
        return None
    counted = part.flops(given, cotangent if which == BOTH else None)
    return None if counted is None else int(counted)


def _parameters(part: Part, twins: Mapping[str, str]) -> int | None:
    """Count the parameters by the framework's own list, or by those that it hands out."""
    if "inventory" in part.capabilities:
        listed = part.inventory()["parameters"].values()
        return sum(int(prod(one["shape"])) for one in listed if one["trained"])
    if held := part.export():
        return sum(values.size for name, values in held.items() if name not in twins)
    return None


@contextmanager
def _doing(what: str) -> Iterator[None]:
    """Turn whatever the backend raises into :class:`Unavailable`."""
    try:
        with guarded(what):
            yield
    except (Absent, BackendError) as failure:
        raise Unavailable(str(failure)) from failure
