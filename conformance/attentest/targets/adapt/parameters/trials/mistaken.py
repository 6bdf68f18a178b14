"""Assignments that one known mistake settles, where none of them gives the numbers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import product
from typing import Any

import numpy as np

from attentest.analysis.diagnosis.variants import Variant
from attentest.faults import faults
from attentest.targets.adapt.parameters.behaviour import Run, Sample
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.trial import places, read
from attentest_spec import Choices, Sizes, Table
from attentest_spec.choices import Value

SECONDS = 2.0
"""Time limit for trying mistakes, in one search."""

CLOSE = 1e-6
"""The largest difference of numbers that are those of a mistake, as a part of the largest one."""

OF_ATTENTION = (
    "attention.softmax-over-queries",
    "attention.softmax-over-heads",
    "attention.masked-after-softmax",
    "attention.scale-by-model-width",
    "attention.scale-multiplied",
    "attention.scale-without-root",
    "attention.keys-averaged",
    "multi_head_attention.scaled-before-and-after",
    "multi_head_attention.scaled-by-shared-width",
    "multi_head_attention.merged-without-transpose",
    "multi_head_attention.split-without-transpose",
    "multi_head_attention.columns-merged-interleaved",
    "multi_head_attention.positions-repeated",
    "multi_head_attention.next-key-seen",
    "multi_head_attention.own-key-hidden",
    "multi_head_attention.keys-not-turned",
    "multi_head_attention.pairs-of-keys-mixed",
    "multi_head_attention.heads-as-positions",
    "multi_head_attention.slopes-positive",
    "rotary.minus-missing",
    "rotary.second-column-without-sine",
    "rotary.first-column-turned-first",
)
"""Mistakes of attention that no design makes."""

_ASSIGNING = (*OF_ATTENTION, "attention.scale-missing")
"""Mistakes that settle an assignment, those that a few designs make included."""


class Mistakes:
    """The mistakes of attention as they are tried in one search, for a limited time."""

    def __init__(
        self,
        run: Run,
        sizes: Sizes,
        decided: Callable[[str, Table], Mapping[str, Value]],
    ) -> None:
        """Try them against `run`; `decided` returns the choices that a table of a part decides."""
        self._run, self._sizes, self._decided = run, sizes, decided
        self._clock: Clock | None = None

    def only_table(
        self, component: str, tables: Sequence[Table], samples: Sequence[Sample]
    ) -> list[Any]:
        """Return a list of the table with which a mistake gives a sample's output, [] for none.

        Where mistakes give it with several tables, it is the first of these.
        """
        if component != "multi_head_attention" or len(tables) < 2:
            return []
        self._clock = self._clock or Clock(SECONDS)
        for sample, table in product(samples, tables):
            known = Choices.of(self._decided(component, table))
            for variant in _variants(known):
                if self._clock.rings():
                    return []
                if distance(variant, component, table, sample, self._run, self._sizes) <= CLOSE:
                    return [table]
        return []


def _variants(known: Choices) -> Iterator[Variant]:
    for name in _ASSIGNING:
        fault = faults()[name]
        fits = all(known[one] == value for one, value in fault.choices.items())
        if fits and fault.reaches("multi_head_attention"):
            yield Variant({}, (fault,), known)


def distance(
    variant: Variant,
    component: str,
    table: Table,
    sample: Sample,
    run: Run,
    sizes: Sizes,
    first: int = 0,
) -> float:
    """Return the largest difference of a mistake's output to a sample's, as a part of its largest.

    The rows before number `first` may be any.
    """
    at = places(component, table, run.own, sizes, variant.declared)
    try:
        part = variant.backend().build(component, sizes)
        part.load(read(at, run.own, sizes))
        output = part(*deepcopy(sample.inputs))  # some mistakes write into it
    except Exception:  # a mistake may show itself by raising
        return np.inf
    array = np.asarray(output[0] if isinstance(output, tuple) else output)
    if array.shape != sample.output.shape:
        return np.inf
    own, other = (one[..., first:, :] if first else one for one in (sample.output, array))
    found = np.abs(other - own).max(initial=0.0) / np.abs(own).max(initial=0.0)
    return float(np.nan_to_num(found, nan=np.inf))
