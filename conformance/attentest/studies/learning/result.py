"""The result of a training, as plain values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

from attentest.results.html_table import table
from attentest.studies.participants import Failure
from attentest_spec.choices import Value

MEASURES = ("training", "validation", "tokens", "sequences")
"""What is measured at a point of a curve."""

HEADINGS = (
    "backend",
    "weights",
    "training",
    "held out",
    "tokens",
    "sequences",
    "seconds",
    "CPU",
)
"""The headings of :meth:`Learning.ends`."""


@dataclass(frozen=True)
class Point:
    """Where a model stands after `step` steps.

    `training` is its mean loss per token over the steps since the last point, None at the start;
    `validation` the loss on questions that are held out; `tokens` and `sequences` are the shares of
    them that greedy decoding gets right.
    """

    step: int
    training: float | None
    validation: float
    tokens: float
    sequences: float


@dataclass(frozen=True)
class Curve:
    """How one backend learned from one seed, and the seconds, by the clock and of the processor."""

    backend: str
    seed: int
    points: tuple[Point, ...]
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Spread:
    """The mean of a measure over the seeds, with the least and the largest of it."""

    mean: float
    least: float
    largest: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """Return the spread of `values`, of which there is at least one."""
        return cls(mean(values), min(values), max(values))

    def shown(self, scale: float = 1.0, digits: int = 3, unit: str = "") -> str:
        """Return the mean as text, and below it the range where it is more than one value."""
        mean = f"{self.mean * scale:.{digits}f}{unit}"
        least, largest = (f"{one * scale:.{digits - 1}f}" for one in (self.least, self.largest))
        return mean if least == largest else f"{mean}\n{least}..{largest}{unit}"


@dataclass(frozen=True)
class Learning:
    """Backends trained under one regime (see :class:`~.regime.Regime`), side by side.

    `parameters` counts those of each backend, `choices` tells where they differ, `notes` what is to
    be known of the training; `failures` are the backends that were not trained to the end.
    """

    regime: Mapping[str, Any]
    seeds: tuple[int, ...]
    parameters: Mapping[str, int]
    choices: Mapping[str, Mapping[str, Value]]
    curves: tuple[Curve, ...]
    notes: tuple[str, ...]
    failures: tuple[Failure, ...]

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends that were trained."""
        return tuple(dict.fromkeys(one.backend for one in self.curves))

    def of(self, backend: str) -> tuple[Curve, ...]:
        """Return the curves of `backend`, one a seed."""
        return tuple(one for one in self.curves if one.backend == backend)

    def spread(self, backend: str, measure: str, number: int = -1) -> Spread:
        """Return a measure of :data:`MEASURES` at a point of its curves, at the end by default."""
        return Spread.of([getattr(one.points[number], measure) for one in self.of(backend)])

    def ends(self) -> list[tuple[str, ...]]:
        """Return the state of each backend at the end, as rows of text under :data:`HEADINGS`.

        With several seeds a cell holds the mean and the range.
        """
        return [
            (
                name,
                f"{self.parameters[name]:,}",
                *(self.spread(name, one).shown() for one in ("training", "validation")),
                *(self.spread(name, one).shown(100, 1, "%") for one in ("tokens", "sequences")),
                f"{sum(one.seconds for one in self.of(name)):.1f}",
                f"{sum(one.cpu_seconds for one in self.of(name)):.1f}",
            )
            for name in self.backends
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for every point, as a table takes them."""
        return [
            {"backend": one.backend, "seed": one.seed, **asdict(point)}
            for one in self.curves
            for point in one.points
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "backends": list(self.backends)}

    def _repr_html_(self) -> str:
        return table(HEADINGS, self.ends())
