"""Checks of the chapter `rms_norm`: rows of zeros."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_rms_norm.cases import draw_call
from attentest.testing.assertions import finite, holds, matches
from attentest.testing.common import half_precisions
from attentest.testing.draw import Draw
from attentest.testing.gradients import gradient_to
from attentest.testing.norm_calls import NormCall, needs_epsilon
from attentest_spec.precision import largest as largest_of
from attentest_spec.setting import Array


def draw_with_zeros(subject: Subject, draw: Draw, precision: str = "") -> NormCall:
    """Draw a call with two positions, the first of them zeros."""
    if not precision:
        needs_epsilon(subject, "rms_epsilon")
    case = draw_call(subject, draw, scale=1.0, shape=(draw.batch(), 2), precision=precision)
    case.x[:, 0] = 0.0
    return case


@check("rms_norm.zero-row-finite")
def test_zero_row_finite(subject: Subject, draw: Draw) -> None:
    case = draw_with_zeros(subject, draw)
    actual = case.output()
    finite(actual)
    _matches_at_zeros(case, actual)
    holds(bool(as_floats(actual)[:, 1].any()), "Rows that are not zeros came out as 0.")


def _matches_at_zeros(case: NormCall, actual: Array) -> None:
    first = np.zeros(actual.shape[:-1], dtype=bool)
    first[:, 0] = True
    matches(case.probe, case.x, actual=actual, rows=first, what="output at a row of zeros")


@check("rms_norm.zero-row-gradient")
def test_zero_row_gradient(subject: Subject, draw: Draw) -> None:
    choices = subject.choices
    epsilon = float(choices.rms_epsilon)
    divisor = epsilon**0.5 if choices.rms_epsilon_place == "inside-root" else epsilon
    if divisor * largest_of(subject.precision) < 100.0:
        raise Absent(f"{subject.precision} cannot hold a slope of 1 / {divisor:.3g}")
    case = draw_with_zeros(subject, draw)
    gradient = case.probe.vjp((case.x,), draw.floats(*case.x.shape))
    found = gradient_to(gradient, 0, "input", case.x.shape)
    holds(found.any(), "No gradient reaches the input.")


@check("rms_norm.zero-row-half-precision")
def test_zero_row_half_precision(subject: Subject, draw: Draw) -> None:
    if subject.choices.rms_epsilon == 0:
        raise Absent("without an epsilon a row of zeros has no value")
    for precision in half_precisions(subject):
        case = draw_with_zeros(subject, draw, precision)
        actual = case.output()
        finite(actual, what=f"output in {precision}")
        _matches_at_zeros(case, actual)
