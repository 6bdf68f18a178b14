"""Checks of the chapter `layer_norm`: constant rows."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_layer_norm.cases import draw_call
from attentest.testing.assertions import finite, holds, matches
from attentest.testing.common import half_precisions
from attentest.testing.draw import Draw
from attentest.testing.gradients import gradient_to
from attentest.testing.norm_calls import NormCall, needs_epsilon
from attentest_spec.precision import largest as largest_of
from attentest_spec.setting import Array

_LEVELS = (0.0, 3.0, -2.0)
"""Constant rows whose mean is exact, so that nothing is left to be blown up by 1 / epsilon."""


def constant(subject: Subject, draw: Draw, *, level: float, precision: str = "") -> NormCall:
    """Draw a call with two positions, the first of them constant."""
    if not precision:
        needs_epsilon(subject, "norm_epsilon")
    case = draw_call(subject, draw, scale=1.0, shape=(draw.batch(), 2), precision=precision)
    case.x[:, 0] = level
    return case


@check("layer_norm.constant-row-finite")
def test_constant_row_finite(subject: Subject, draw: Draw) -> None:
    case = constant(subject, draw, level=draw.choose(_LEVELS))
    actual = case.output()
    finite(actual)
    _gives_the_bias(case, actual)
    holds(bool(as_floats(actual)[:, 1].any()), "Rows that are not constant came out as 0.")


def _gives_the_bias(case: NormCall, actual: Array) -> None:
    """Demand the bias at constant rows, but for what is left of a mean that is not exact."""
    first = np.zeros(actual.shape[:-1], dtype=bool)
    first[:, 0] = True
    matches(case.probe, case.x, actual=actual, rows=first, what="output at a constant row")


@check("layer_norm.constant-row-gradient")
def test_constant_row_gradient(subject: Subject, draw: Draw) -> None:
    _fits_the_format(subject)
    case = constant(subject, draw, level=draw.choose(_LEVELS))
    gradient = case.probe.vjp((case.x,), draw.floats(*case.x.shape))
    found = gradient_to(gradient, 0, "input", case.x.shape)
    holds(found.any(), "No gradient reaches the input.")


def _fits_the_format(subject: Subject) -> None:
    """End as absent where the slope at a constant row, one over the divisor, is out of range."""
    choices = subject.choices
    inside = choices.norm_epsilon_place == "inside-root"
    divisor = choices.norm_epsilon**0.5 if inside else choices.norm_epsilon
    if divisor * largest_of(subject.precision) < 100.0:
        raise Absent(f"{subject.precision} cannot hold a slope of 1 / {divisor:.3g}")


@check("layer_norm.constant-row-half-precision")
def test_constant_row_half_precision(subject: Subject, draw: Draw) -> None:
    if subject.choices.norm_epsilon == 0:
        raise Absent("without an epsilon a constant row has no value")
    for precision in half_precisions(subject):
        case = constant(subject, draw, level=0.0, precision=precision)
        actual = case.output()
        finite(actual, what=f"output in {precision}")
        _gives_the_bias(case, actual)
