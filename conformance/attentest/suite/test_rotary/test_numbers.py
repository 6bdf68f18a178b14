"""Checks of the chapter `rotary`: the numbers under every choice, near and far."""

from dataclasses import replace

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_rotary.cases import (
    GIVEN,
    Turn,
    draw_positions,
    draw_sizes,
    draw_turn,
    matches_turn,
    shows_declared,
)
from attentest.testing.assertions import holds
from attentest.testing.common import half_precisions, same_precision
from attentest.testing.draw import Draw
from attentest.testing.rotary_widths import WIDTHS, served_widths
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, SizesInUse, at_sizes_in_use
from attentest_spec import CHOICES, Choices, Sizes
from attentest_spec.precision import epsilon
from attentest_spec.rotary import frequencies


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    width = served_widths(subject.choices, (128, 64) if size.width > size.heads * 4 else (8, 16))[0]
    sizes = draw_sizes(subject, draw, width, size.heads, size.length)
    x = draw.floats(size.batch, size.heads, size.length, width)
    matches_turn(Turn(subject.part("rotary", sizes), x))


@check(
    "rotary.formula",
    in_use=at_sizes_in_use(_formula_in_use, replace(WIDE, length=20), MANY, replace(LONG, heads=1)),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    shows_declared(draw_turn(subject, draw), "rotary_pairs", ("adjacent", "halves"))


@check("rotary.base")
def test_base(subject: Subject, draw: Draw) -> None:
    case = draw_turn(subject, draw, lengths=(4, 9), widths=(8, 16, 12, 20, 32, 64))
    shows_declared(case, "rotary_base", (10_000.0, 500_000.0, 1e6, 1000.0))


@check("rotary.width")
def test_width(subject: Subject, draw: Draw) -> None:
    case = draw_turn(subject, draw, widths=(8, 16, 24, 32, 40, 64))
    shows_declared(case, "rotary_width", ("whole", 0.5, 0.25, 0.75))


@check("rotary.partial")
def test_partial(subject: Subject, draw: Draw) -> None:
    if subject.choices.rotary_width == "whole":
        raise Absent("all columns are turned")
    case = draw_turn(subject, draw, widths=(8, 16, 24, 32, 40, 64))
    shows_declared(case, "rotary_partial", ("contiguous", "proportional"))


@check("rotary.scaling")
def test_scaling(subject: Subject, draw: Draw) -> None:
    names = [option.name for option in CHOICES["rotary_scaling"].options]
    for lengths in ((2, 12), (18, 24)):  # short ones, and those beyond a table of a few rows
        case = draw_turn(subject, draw, lengths=lengths, widths=(16, 8, 12, 32, 64))
        shows_declared(case, "rotary_scaling", names)


@check("rotary.magnitude")
def test_magnitude(subject: Subject, draw: Draw) -> None:
    shows_declared(draw_turn(subject, draw), "rotary_magnitude", ("as-scaling", 1.0, 0.5, 2.0))


@check("rotary.direction")
def test_direction(subject: Subject, draw: Draw) -> None:
    shows_declared(draw_turn(subject, draw), "rotary_direction", ("forward", "backward"))


@check("rotary.arithmetic")
def test_arithmetic(subject: Subject, draw: Draw) -> None:
    if epsilon(subject.precision) >= epsilon("float32"):
        raise Absent(f"{subject.precision} has no more digits than float32")
    if subject.limits.length == 1:
        raise Absent("a single position is turned by 1 and 0, which are exact in every precision")
    case = draw_turn(subject, draw, lengths=(4, 12), widths=_rounded_widths(subject.choices))
    actual = case.output()
    options = [option.name for option in CHOICES["rotary_arithmetic"].options]
    fitting = [
        one for one in options if case.share(actual, case.choices.but(rotary_arithmetic=one)) <= 1
    ]
    declared = subject.declared.get("rotary_arithmetic", options[0])
    if fitting:  # an exact turn lies within the tolerance of a rounded one, and not vice versa
        said = (
            "declared as" if "rotary_arithmetic" in subject.declared else "not declared, so it is"
        )
        holds(
            fitting[0] == declared,
            f"rotary_arithmetic is {said} {declared}; the numbers show {fitting[0]}.",
            actual=actual,
        )
    matches_turn(case, actual)


def _rounded_widths(choices: Choices) -> list[int]:
    """Return the widths of heads with a frequency that single precision has to round.

    Code may hold frequencies or their reciprocals: with the base 10000 and 8 columns these are 1,
    10, 100 and 1000.
    """

    def error(rate: float) -> float:
        return abs(float(np.float32(rate)) / rate - 1)

    rates = {width: frequencies(Sizes(), choices, width, 8) for width in WIDTHS}
    rounded = [
        width
        for width, found in rates.items()
        if any(min(error(rate), error(1 / rate)) > _EXACT for rate in found)
    ]
    return rounded or [*WIDTHS]


_EXACT = 1e-12


@check("rotary.far-positions")
def test_far_positions(subject: Subject, draw: Draw) -> None:
    matches_turn(_far(subject, draw, draw.choose((100_000, 70_000)), ""))


@check("rotary.half-precision", examples=2)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        case = _far(subject, draw, draw.choose((3000, 700)), precision)
        output = case.probe.output(case.x, case.positions)
        same_precision(case.probe, output)
        matches_turn(case, output.astype(float))


def _far(subject: Subject, draw: Draw, most: int, precision: str) -> Turn:
    """Draw a call with positions up to `most`: given ones, or those of a long sequence."""
    longest = min(most, subject.limits.length or most)
    given = [one for one in GIVEN if one in subject.limits.positions]
    length = min(7, longest) if given else min(longest, 5000)
    width = served_widths(subject.choices)[0]
    sizes = draw_sizes(subject, draw, width, 1, longest)
    probe = subject.part("rotary", sizes, precision=precision)
    x = draw.floats(2, 1, length, width, precision=precision)
    if not given:
        return Turn(probe, x)
    positions = draw_positions(draw, draw.choose(given), 2, length, longest)
    far = np.asarray(positions)
    return Turn(probe, x, far + (longest - 1 - far.max()))
