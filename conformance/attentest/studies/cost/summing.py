"""Sums up what was measured: medians with quartiles, ratios by round, growth."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from attentest.harness.description import Facts
from attentest.studies.cost.formulas import BOTH_PASSES, flops
from attentest.studies.cost.growth import polynomial, shares, slope
from attentest.studies.cost.layers import layer_types
from attentest.studies.cost.memory import RESOLUTION
from attentest.studies.cost.plan import BOTH, Plan, Point
from attentest.studies.cost.result import (
    FLOPS,
    MEMORY,
    TIME,
    Cost,
    Growth,
    Measurement,
    Parameters,
    Spread,
)
from attentest.studies.cost.stand import Holding, Sample
from attentest.studies.participants import Failure
from attentest_spec.parameters import count

Key = tuple[Point, str]
"""A point, and a pass measured there."""


@dataclass
class Found:
    """Everything that was measured of one backend."""

    facts: Facts
    held: dict[Point, Holding] = field(default_factory=dict)
    samples: dict[Key, list[Sample]] = field(default_factory=dict)


def summed(plan: Plan, found: Mapping[str, Found], failures: Sequence[Failure]) -> Cost:
    """Return what was `found` of the backends that did not fail."""
    return Cost(
        plan,
        tuple(found),
        tuple(_parameters(plan, found)),
        tuple(_measurements(plan, found)),
        tuple(_growths(plan, found)),
        layer_types(max(plan.lengths, default=plan.length), plan.width),
        tuple(failures),
    )


def _parameters(plan: Plan, found: Mapping[str, Found]) -> Iterator[Parameters]:
    for width in dict.fromkeys(point.width for point in plan.points):
        for name, one in found.items():
            counted = next(h.parameters for at, h in one.held.items() if at.width == width)
            expected = count(plan.component, plan.sizes(width), one.facts.choices)
            yield Parameters(name, width, counted, expected)


def _measurements(plan: Plan, found: Mapping[str, Found]) -> Iterator[Measurement]:
    for point in plan.points:
        for which in plan.passes:
            for name, one in found.items():
                if (point, which) in one.samples:
                    first = next(f for f in found.values() if (point, which) in f.samples)
                    yield _measurement(plan, name, one, first, (point, which))


def _measurement(plan: Plan, name: str, one: Found, first: Found, key: Key) -> Measurement:
    point, which = key
    samples, held = one.samples[key], one.held[point]
    expected = _flops(plan, one, point, which)
    speeds = [
        expected * sample.yardstick / sample.seconds
        for sample in samples
        if sample.yardstick is not None and expected
    ]
    return Measurement(
        name,
        point.length,
        point.width,
        which,
        Spread.of([sample.seconds for sample in samples]),
        Spread.of(
            [
                sample.seconds / other.seconds
                for sample, other in zip(samples, first.samples[key], strict=True)
            ]
        ),
        Spread.of(speeds) if speeds else None,
        Spread.of(held.peaks[which]) if held.peaks[which] else None,
        expected,
        held.flops[which],
    )


def _flops(plan: Plan, one: Found, point: Point, which: str) -> int:
    forward = flops(plan.component, plan.work(point, one.facts.choices))
    return forward * (BOTH_PASSES if which == BOTH else 1)


def _growths(plan: Plan, found: Mapping[str, Found]) -> Iterator[Growth]:
    sweeps = {
        "length": [Point(length, plan.width) for length in plan.lengths],
        "width": [Point(plan.length, width) for width in plan.widths],
    }
    for over, points in sweeps.items():
        for name, one in found.items():
            for which in plan.passes:
                for quantity, values in _quantities(plan, one, points, which).items():
                    sizes = [getattr(point, over) for point in values]
                    if len(sizes) > 1:
                        samples = list(values.values())
                        yield _growth(name, over, which, quantity, sizes, samples)


def _quantities(
    plan: Plan, one: Found, points: Sequence[Point], which: str
) -> dict[str, dict[Point, list[float]]]:
    """Return what was measured of each quantity at those of `points` where it could be."""
    taken = [point for point in points if (point, which) in one.samples]
    peaks = {point: [float(n) for n in one.held[point].peaks[which]] for point in taken}
    exact = {point: _flops(plan, one, point, which) for point in taken}
    return {
        TIME: {point: [s.seconds for s in one.samples[point, which]] for point in taken},
        MEMORY: {
            point: found for point, found in peaks.items() if min(found, default=0) > RESOLUTION
        },
        FLOPS: {point: [float(n)] for point, n in exact.items() if n},
    }


def _growth(
    name: str,
    over: str,
    which: str,
    quantity: str,
    sizes: Sequence[int],
    samples: Sequence[Sequence[float]],
) -> Growth:
    steepness = slope(sizes, samples)
    terms = shared = None
    if len(sizes) > 2:
        terms = polynomial(sizes, [Spread.of(one).median for one in samples])
        shared = shares(terms, sizes[-1])
    return Growth(name, over, which, quantity, steepness.exponent, steepness.error, terms, shared)
