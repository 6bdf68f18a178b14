"""The plan of a measurement: the component, its sizes, the sweeps, repetitions and precision."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np

from attentest.harness.description import Facts
from attentest.harness.errors import AttentestError
from attentest.harness.scripted import STEPWISE
from attentest.studies.comparison import BadExample, Example
from attentest.studies.cost.formulas import Work, flops
from attentest_spec import COMPONENTS, PAPER, Choices, Sizes
from attentest_spec.contract import MASK_KINDS
from attentest_spec.names import require
from attentest_spec.precision import PRECISIONS


class BadPlan(AttentestError, ValueError):
    """A request that cannot be measured; the text says why."""


@dataclass(frozen=True, order=True)
class Point:
    """A point of measurement: the length of the sentences and the width of the model."""

    length: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A sweep over `lengths` at one `width`, and one over `widths` at one `length`.

    A `component` of "" is the largest that all provide; a `precision` of "" is float32 where all
    compute in it and the finest that they share where not. `inner` is the width of a feed-forward
    network's inner layer as a multiple of the model's. `masks` are the kinds that may be used,
    `cross` says whether attention may have keys that are not its queries.
    """

    component: str = ""
    lengths: tuple[int, ...] = (32, 64, 128, 256, 512)
    widths: tuple[int, ...] = (32, 64, 128, 256)
    length: int = 64
    width: int = 64
    batch: int = 2
    heads: int = 4
    layers: int = 2
    inner: int = 4
    vocabulary: int = 100
    repeat: int = 11
    precision: str = ""
    masks: tuple[str, ...] = MASK_KINDS
    cross: bool = True
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be; raises :class:`BadPlan`, or UnknownName for an unknown name."""
        object.__setattr__(self, "lengths", tuple(sorted(set(self.lengths))))
        object.__setattr__(self, "widths", tuple(sorted(set(self.widths))))
        if self.precision:
            require("precision", self.precision, PRECISIONS)
        if self.component:
            require("component", self.component, COMPONENTS)
        if self.component in STEPWISE:
            raise BadPlan(DECODES.format(self.component))
        numbers = {"batch": self.batch, "heads": self.heads, "layers": self.layers}
        numbers |= {"repeat": self.repeat, "length": self.length, "width": self.width}
        numbers |= {"inner": self.inner, "vocabulary - 1": self.vocabulary - 1}
        for name, value in numbers.items():
            _positive(name, value)
        for name, values in (("lengths", self.lengths), ("widths", self.widths)):
            for value in values:
                _positive(name, value)
        if not (self.lengths or self.widths):
            raise BadPlan("There is nothing to measure. Give at least one length or one width.")
        for width in (self.width, *self.widths):
            if width % self.heads:
                raise BadPlan(
                    f"A width of {width} cannot be divided among {self.heads} heads. Give widths "
                    f"that are multiples of {self.heads}, or another number of heads."
                )

    @property
    def points(self) -> tuple[Point, ...]:
        """The points of measurement, each once."""
        over_length = [Point(length, self.width) for length in self.lengths]
        over_width = [Point(self.length, width) for width in self.widths]
        return tuple(dict.fromkeys([*over_length, *over_width]))

    @property
    def passes(self) -> tuple[str, str]:
        """The quantities measured at each point."""
        return FORWARD, BOTH

    def sizes(self, width: int) -> Sizes:
        """Return the sizes of the component at `width`; they serve every length."""
        return Sizes(
            d_model=width,
            heads=self.heads,
            d_ff=self.inner * width,
            layers=self.layers,
            source_vocabulary=self.vocabulary,
            target_vocabulary=self.vocabulary,
            max_length=max(self.length, *self.lengths, 1),
        )

    def example(self, point: Point) -> Example:
        """Return sentences without a pad, source and target equally long."""
        rng = np.random.default_rng(0)
        rows = rng.integers(1, self.vocabulary, (2, self.batch, point.length)).tolist()
        source, target = (tuple(map(tuple, side)) for side in rows)
        sizes, precision = self.sizes(point.width), self.precision or "float64"
        return Example(sizes, source, target, self.masks, self.cross, precision)

    def work(self, point: Point, choices: Choices) -> Work:
        """Return what the formulas need to know."""
        return Work(self.sizes(point.width), choices, self.batch, point.length)

    def fitted(self, facts: Mapping[str, Facts]) -> "Plan":
        """Return it for those in `facts`: a component all provide, sizes that suit all of them.

        Raises :class:`BadPlan` where there is none.
        """
        longest = self.example(Point(max(self.length, *self.lengths, 1), self.width))
        try:
            fitted = longest.fitted({name: one.limits for name, one in facts.items()})
        except BadExample as wrong:
            raise BadPlan(str(wrong)) from wrong
        sizes = fitted.sizes
        return replace(
            self,
            component=self.component or self._largest(facts),
            lengths=tuple(one for one in self.lengths if one <= sizes.max_length),
            length=min(self.length, sizes.max_length),
            heads=sizes.heads,
            layers=sizes.layers,
            inner=sizes.d_ff // sizes.d_model,
            precision=self.precision or _shared_precision(facts),
            masks=fitted.masks,
            cross=fitted.cross,
            notes=fitted.notes,
        )

    def _largest(self, facts: Mapping[str, Facts]) -> str:
        """Return the component with the most operations of those that all provide."""
        shared = [
            name for name in COMPONENTS if all(name in one.components for one in facts.values())
        ]
        if shared and all(name in STEPWISE for name in shared):
            raise BadPlan(DECODES.format(shared[0]))
        shared = [name for name in shared if name not in STEPWISE]
        if not shared:
            told = "; ".join(f"{name}: {', '.join(one.components)}" for name, one in facts.items())
            raise BadPlan(f"They have no component in common, so nothing can be measured. {told}.")
        work = self.work(Point(self.length, self.width), PAPER)
        return max(shared, key=lambda name: flops(name, work))

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Plan":
        """Read a plan back from plain values."""
        named = ("lengths", "widths", "masks", "notes")
        return cls(**{**plain, **{name: tuple(plain[name]) for name in named}})


def _shared_precision(facts: Mapping[str, Facts]) -> str:
    """Return float32 where all compute in it, else the finest precision that they share, if any."""
    shared = [
        name
        for name in ("float32", *PRECISIONS)
        if all(name in one.limits.precisions for one in facts.values())
    ]
    return shared[0] if shared else "float32"


DECODES = (
    "{} is a loop over tokens, and its cost is that of the model that it asks, so it is not "
    "measured. `attentest check` judges it; measure the model with `attentest cost`."
)
"""The answer where nothing but decoding could be measured."""

FORWARD, BOTH = "forward", "forward and backward"
"""Passes measured: the output alone, or the output and the gradients of inputs and parameters."""


def _positive(name: str, value: int) -> None:
    if not isfinite(value) or value < 1:
        raise BadPlan(f"The {name} is {value}; it has to be a whole number of at least 1.")
