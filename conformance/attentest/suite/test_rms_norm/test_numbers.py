"""Checks of the chapter `rms_norm`: the numbers, in every precision."""

from dataclasses import replace
from itertools import product

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.relative_rounding import exceeds_rounding, with_zeros
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_rms_norm.cases import draw_call
from attentest.testing.assertions import holds
from attentest.testing.common import (
    HALF_PRECISIONS,
    Call,
    half_precisions,
    matches_in_precision,
    same_precision,
)
from attentest.testing.draw import Draw
from attentest.testing.invariants import agree_up_to_rounding
from attentest.testing.norm_calls import NormCall, initial_parameters, require_initial_values
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, WIDER, SizesInUse, at_sizes_in_use


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    widths, shape = (size.width, size.width), (size.batch, size.length)
    draw_call(subject, draw, scale=1.0, widths=widths, shape=shape).checked_output()


@check(
    "rms_norm.formula",
    examples=4,
    in_use=at_sizes_in_use(_formula_in_use, WIDE, WIDER, MANY, LONG),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    # A scale of 0 draws one; rows below the root of the epsilon show a floor.
    for scale, widths in product((0.0, 1e-6), ((2, 12), (60, 130))):
        offset = draw.choose((0.0, 2.0))
        draw_call(subject, draw, scale=scale, offset=offset, widths=widths).checked_output()
    if subject.precision not in HALF_PRECISIONS:
        _rounds_relatively(draw_call(subject, draw, scale=1.0))


def _rounds_relatively(drawn: NormCall) -> None:
    """Demand that numbers much smaller than those beside them are right as well."""
    case = replace(drawn, x=with_zeros(drawn.x))
    actual = case.output()
    wrong = exceeds_rounding(case.probe, case.x, actual)
    holds(
        not wrong.any(),
        f"{wrong.sum()} of {wrong.size} numbers differ by more than rounding at their own size; "
        "what is 0 stays 0, up to the bias.",
        actual=actual,
        expected=case.probe.expected(case.x).output,
    )


@check("rms_norm.weight-by-column")
def test_weight_by_column(subject: Subject, draw: Draw) -> None:
    # As many positions as columns: a weight along the wrong axis fits.
    width = draw.length(2, 5)
    case = draw_call(subject, draw, widths=(width, width), shape=(draw.batch(), width))
    if "gain" not in case.probe.parameters or not case.loaded:
        raise Absent(f"{subject.name} gives no access to a weight")
    after = case.checked_output()
    given = dict(case.probe.parameters)
    case.probe.load(initial_parameters(case.probe))
    weight = given["gain"] + (subject.choices.rms_weight == "one-plus-weight")
    expected = weight * as_floats(case.output()) + given.get("bias", 0.0)
    case.probe.load(given)
    agree_up_to_rounding(
        case.probe, case.x, actual=after, expected=expected, what="output with a weight"
    )


@check("rms_norm.shapes")
def test_shapes(subject: Subject, draw: Draw) -> None:
    ones = draw.choose(((1, 1), (1, 0), (0, 1), (0, 0)))
    shape = (ones[0] or draw.batch(), ones[1] or draw.length())
    case = draw_call(subject, draw, scale=1.0, shape=shape)
    same_precision(case.probe, case.checked_output())


@check("rms_norm.initial-weight")
def test_initial_weight(subject: Subject, draw: Draw) -> None:
    require_initial_values(subject)
    case = draw_call(subject, draw, scale=1.0)
    fresh = subject.part("rms_norm", case.probe.sizes)
    fresh.parameters = initial_parameters(fresh)
    NormCall(fresh, case.x, False).checked_output()


@check("rms_norm.float32")
def test_float32(subject: Subject, draw: Draw) -> None:
    matches_in_precision(lambda precision: _call(subject, draw, precision), "float32")


@check("rms_norm.half-precision")
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        matches_in_precision(lambda one: _call(subject, draw, one, largest_row=10.0), precision)


@check("rms_norm.half-precision-large")
def test_half_precision_large(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        matches_in_precision(lambda one: _call(subject, draw, one, largest_row=300.0), precision)


def _call(subject: Subject, draw: Draw, precision: str, largest_row: float = 30.0) -> Call:
    """Draw a call in a precision; `largest_row` is the size of the numbers of the first sample.

    At 10 the sum of squares of a row fits into float16, at 300 most squares do not.
    """
    case = draw_call(subject, draw, scale=1.0, widths=(3, 12), precision=precision)
    case.x[0] = cast(case.x[0] * largest_row, precision)
    return case.probe, (case.x,)
