"""Invariants: laws between answers of one implementation, with a parameter map or without."""

from typing import Annotated

import numpy as np

from attentest.harness.arithmetic import arithmetic
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject, guarded
from attentest.harness.tolerances import as_floats, distance, error_bound, largest, rounding
from attentest.testing.assertions import near
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.contract import Input
from attentest_spec.setting import Array


def build_with_parameters(
    subject: Subject, draw: Draw, component: str, sizes: Sizes, *, precision: str = ""
) -> Probe:
    """Build `component` with drawn parameters, or its initial ones where it has no parameter map.

    For clauses of behaviour, which hold for a bare callable as well.
    """
    probe = subject.part(component, sizes, precision=precision)
    if has_parameter_map(probe):
        probe.load(draw.parameters(component, sizes, precision=precision))
    return probe


def agree_up_to_rounding(
    probe: Probe,
    *inputs: Input,
    actual: Annotated[Array, "*found"],
    expected: Annotated[Array, "*shape"],
    what: str,
    rows: Annotated[Array, "*rows"] | None = None,
) -> None:
    """Demand that two answers of one part, which are equal by a law, are equal up to rounding.

    Their shape may be any, `rows` selects positions on its first axes. `inputs` are those of one of
    the answers. Each may be as wrong as the arithmetic allows, which
    the reference measures; without parameters the scores are taken to grow as the inputs squared.
    """
    unit = rounding(probe.precision, 1)
    found, wanted = (actual, expected) if rows is None else (actual[rows], expected[rows])
    apart = distance(found, wanted) if actual.shape == expected.shape else np.inf
    if 4 * apart <= unit * largest(wanted):
        tolerance = unit * largest(wanted)  # within a few roundings: no need to measure
    elif probe.parameters:
        answer = as_floats(probe.expected(*inputs).output)
        tolerance = 2 * error_bound(probe, inputs, answer, difference=apart / 2)
    else:
        reach = max(
            (largest(one) for one in inputs if isinstance(one, np.ndarray) and one.dtype != bool),
            default=1.0,
        )
        tolerance = rounding(arithmetic(probe), probe.sizes.d_model) * (1.0 + reach) ** 3
    near(
        probe.subject,
        actual,
        expected,
        what=what,
        size=tolerance / unit,
        precision=probe.precision,
        rows=rows,
    )


def draw_order(draw: Draw, length: int) -> Annotated[Array, "{length}"]:
    """Draw a permutation (length,) that is not the identity, and no rotation, where there is one.

    A rotation leaves neighbours beside each other, and with them what a shift mixes.
    """
    order = draw.rng.permutation(length)
    if length > 2 and (np.diff(order) % length == 1).all():
        order[:2] = order[1::-1]
    return order[::-1].copy() if np.array_equal(order, np.arange(length)) else order


def has_parameter_map(probe: Probe) -> bool:
    """Return whether the part has a parameter map, so that parameters can be loaded."""
    try:
        with guarded("exporting the parameters"):
            return bool(probe.part.export())
    except Absent:
        return False
