"""Laws: what an implementation is held to by its own answers, with a parameter map or without."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject, guarded
from attentest.harness.tolerances import (
    arithmetic,
    as_floats,
    distance,
    error_bound,
    largest,
    rounding,
)
from attentest.testing.assertions import near
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.contract import Input
from attentest_spec.setting import Array


def prepared(
    subject: Subject, draw: Draw, component: str, sizes: Sizes, *, precision: str = ""
) -> Probe:
    """Build `component` with drawn parameters, or as it is born where it has no parameter map.

    For clauses of behaviour, which a bare callable has to keep as well.
    """
    probe = subject.part(component, sizes, precision=precision)
    if has_map(probe):
        probe.load(draw.parameters(component, sizes, precision=precision))
    return probe


def alike(
    probe: Probe,
    *inputs: Input,
    actual: Array,
    expected: Array,
    what: str,
    rows: Array | None = None,
) -> None:
    """Demand that two answers of one part, which a law makes equal, are so up to rounding.

    `inputs` are those of one of the answers. Each may be as wrong as the arithmetic allows, which
    the oracle measures; without parameters the scores are taken to grow as the inputs squared.
    """
    unit = rounding(probe.precision, 1)
    found, wanted = (actual, expected) if rows is None else (actual[rows], expected[rows])
    if actual.shape == expected.shape and 4 * distance(found, wanted) <= unit * largest(wanted):
        bound = unit * largest(wanted)  # within a few roundings: no need to measure
    elif probe.parameters:
        answer = as_floats(probe.expected(*inputs).output)
        bound = 2 * error_bound(probe, inputs, answer)
    else:
        reach = max(
            (largest(one) for one in inputs if isinstance(one, np.ndarray) and one.dtype != bool),
            default=1.0,
        )
        bound = rounding(arithmetic(probe), probe.sizes.d_model) * (1.0 + reach) ** 3
    near(
        probe.subject,
        actual,
        expected,
        what=what,
        size=bound / unit,
        precision=probe.precision,
        rows=rows,
    )


def shuffled(draw: Draw, length: int) -> Array:
    """Return an order of `length` items that is not the one they came in."""
    order = draw.rng.permutation(length)
    return np.roll(order, 1) if np.array_equal(order, np.arange(length)) else order


def has_map(probe: Probe) -> bool:
    """Say whether the part has a parameter map, so that it can be given numbers."""
    try:
        with guarded("exporting the parameters"):
            return bool(probe.part.export())
    except Absent:
        return False
