"""The result of a training, as plain values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from statistics import mean
from typing import Any

from attentest.results.html_table import table
from attentest.studies.participants import Failure
from attentest_spec.choices import Value

MEASURES = ("training", "validation", "tokens", "sequences", "trained", "bleu")
"""Quantities measured at a point of a curve."""

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

SOMETIMES = {"trained": "trained right", "bleu": "BLEU"}
"""The headings of measures that not every task has."""

_SHOWN = {"trained": (100, 1, "%"), "bleu": (1, 1, "")}
"""Their scales, digits and units."""


@dataclass(frozen=True)
class Point:
    """Measurements of a model after `step` steps.

    `training` is its mean loss per token over the steps since the last point, None at the start;
    `validation` the loss on questions that are held out; `tokens` and `sequences` are the shares of
    them that greedy decoding gets right. `trained` is the share of right questions among those that
    it is trained on, of a task that has few; `bleu` that of translations, from 0 to 100.
    `gradients` are the mean norms over the steps since the last point, by part.
    """

    step: int
    training: float | None
    validation: float
    tokens: float
    sequences: float
    trained: float | None = None
    bleu: float | None = None
    gradients: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Curve:
    """The record of one training, with the seconds by the clock and of the processor.

    `parts` says which parts of the training were the backend's own, and why the others were not;
    it is empty where none were asked for.
    """

    backend: str
    seed: int
    points: tuple[Point, ...]
    seconds: float
    cpu_seconds: float
    parts: Mapping[str, str] = field(default_factory=dict)

    def first(self, measure: str, share: float) -> int | None:
        """Return the first step at which a measure of :data:`MEASURES` is at least `share`."""
        values = ((point.step, getattr(point, measure)) for point in self.points)
        return next((step for step, one in values if one is not None and one >= share), None)


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

    @property
    def measured(self) -> tuple[str, ...]:
        """The measures of :data:`SOMETIMES` that this task has."""
        ends = [one.points[-1] for one in self.curves]
        every = {name: [getattr(one, name) for one in ends] for name in SOMETIMES}
        return tuple(name for name, values in every.items() if values and None not in values)

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of :meth:`ends`: those of every task, and those of this one."""
        return (*HEADINGS, *(SOMETIMES[name] for name in self.measured))

    def ends(self) -> list[tuple[str, ...]]:
        """Return the state of each backend at the end, as rows of text under :attr:`headings`.

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
                *(self.spread(name, one).shown(*_SHOWN[one]) for one in self.measured),
            )
            for name in self.backends
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for every point, as a table takes them."""
        return [
            {"backend": one.backend, "seed": one.seed, **_numbers(point)}
            for one in self.curves
            for point in one.points
        ]

    def gradient_rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for the gradient of every part at every point."""
        return [
            {
                "backend": one.backend,
                "seed": one.seed,
                "step": point.step,
                "part": part,
                "norm": norm,
            }
            for one in self.curves
            for point in one.points
            for part, norm in point.gradients.items()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "backends": list(self.backends)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Learning":
        """Read a result back from plain values, as :meth:`as_dict` returns them."""
        curves = [
            Curve(**{**one, "points": tuple(Point(**point) for point in one["points"])})
            for one in plain["curves"]
        ]
        failures = tuple(Failure(**one) for one in plain["failures"])
        known = {one.name: plain[one.name] for one in fields(cls)}
        return cls(
            **{
                **known,
                "seeds": tuple(plain["seeds"]),
                "notes": tuple(plain["notes"]),
                "curves": tuple(curves),
                "failures": failures,
            }
        )

    def _repr_html_(self) -> str:
        return table(self.headings, self.ends())


def _numbers(point: Point) -> dict[str, Any]:
    return {name: value for name, value in asdict(point).items() if name != "gradients"}
