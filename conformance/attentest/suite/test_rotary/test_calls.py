"""Checks of the chapter `rotary`: shapes, widths, tables that are held, and inputs."""

import numpy as np

from attentest.harness.errors import BackendError
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_rotary.cases import (
    Turn,
    draw_sizes,
    draw_turn,
    matches_turn,
    moves_as_declared,
)
from attentest.testing.assertions import equal, holds, same_shape
from attentest.testing.common import same_precision
from attentest.testing.draw import Draw
from attentest.testing.moves import follows_to_device, moves_once
from attentest.testing.refusal import explains_refusal
from attentest.testing.rotary_widths import odd_widths
from attentest_spec import Choices
from attentest_spec.precision import epsilon
from attentest_spec.rotary import turned_width


@check("rotary.shapes")
def test_shapes(subject: Subject, draw: Draw) -> None:
    known = [one for one in ("float32", "float64") if one in subject.limits.precisions]
    for precision in dict.fromkeys([subject.precision, *known]):
        case = draw_turn(subject, draw, lengths=(1, 4), precision=precision, kinds=("none",))
        for x in (case.x, case.x[:1], case.x[:, :, :1], case.x[:1, :, :1]):
            output = case.probe.output(x, None)
            same_shape(output, x.shape)
            same_precision(case.probe, output)
        moves_as_declared(case, case.output())


@check("rotary.odd-width")
def test_odd_width(subject: Subject, draw: Draw) -> None:
    try:
        case = _odd(subject, draw)
        output = case.output()
    except BackendError:
        return
    if case.share(output, _by_whole_width(case)) > 1:
        matches_turn(case, output)


def _by_whole_width(case: Turn) -> Choices:
    """Return choices under which the odd width itself divides the exponents of the frequencies.

    The clause leaves that open: base ** (-2i / 5) is as good as base ** (-2i / 4), and is what the
    reference computes with another base.
    """
    width, choices = case.x.shape[-1], case.choices
    if choices.rotary_width != "whole":
        return choices
    base = float(choices.rotary_base) ** (turned_width(choices, width) / width)
    return choices.but(rotary_base=base)


@check("rotary.odd-width-named", examples=2)
def test_odd_width_named(subject: Subject, draw: Draw) -> None:
    width = draw.choose((5, 7, 9))
    explains_refusal(
        subject,
        f"an odd width of {width} columns",
        lambda: _odd(subject, draw, width).output(),
        naming=(width,),
    )


def _odd(subject: Subject, draw: Draw, width: int = 0) -> Turn:
    """Draw a call with heads of an odd width; raises what building raises."""
    odd = width or draw.choose(odd_widths(subject.choices))
    heads, length = draw.heads(), draw.length(2, 4)
    sizes = draw_sizes(subject, draw, odd, heads, 40)
    return Turn(subject.part("rotary", sizes), draw.floats(2, heads, length, odd))


@check("rotary.not-trained", examples=2)
def test_not_trained(subject: Subject, draw: Draw) -> None:
    case = draw_turn(subject, draw, kinds=("none",))
    moves_as_declared(case, case.output())
    held = case.probe.do("listing what it holds", lambda part: part.inventory())
    trained = {
        name: tuple(facts["shape"])
        for name, facts in held["parameters"].items()
        if facts.get("trained", True)
    }
    holds(not trained, f"There are trained parameters: {trained}.")


@check("rotary.not-saved", examples=2)
def test_not_saved(subject: Subject, draw: Draw) -> None:
    most = min(draw.integer(70, 80), subject.limits.length or 80)
    case = draw_turn(subject, draw, kinds=("none",), most=most, widths=(8, 16, 32, 64))
    moves_as_declared(case, case.output())
    longest = Turn(case.probe, draw.floats(1, case.x.shape[1], most, case.x.shape[-1]))
    longest.output()
    held = case.probe.do("listing what it saves", lambda part: part.inventory())
    saved = {
        name: tuple(shape)
        for name, shape in held["state"].items()
        if np.prod(shape, dtype=int) >= most
    }
    holds(not saved, f"What is saved grows with the longest length, here {most}: {saved}.")


@check("rotary.moved-once", examples=1)
def test_moved_once(subject: Subject, draw: Draw) -> None:
    case = draw_turn(subject, draw, lengths=(2, 5), kinds=("none",))
    case.output()  # tables may be made by the first call
    moves_once(case.probe, case.x)


@check("rotary.follows-moves")
def test_follows_moves(subject: Subject, draw: Draw) -> None:
    case = draw_turn(subject, draw, lengths=(2, 5), kinds=("none",))
    case.output()  # tables may be made by the first call
    follows_to_device(case.probe, case.x, None)
    others = [
        one
        for one in ("float32", "float64", "bfloat16")
        if one in subject.limits.precisions and one != subject.precision
    ]
    for precision in others[:1]:
        moved = case.probe.become(
            f"moving it to {precision}",
            lambda part, to=precision: part.moved(precision=to),  # type: ignore[misc]
            precision,
        )
        output = moved.output(case.x, None)
        same_precision(moved, output)
        # What was rounded before the move stays rounded: the coarser precision of the two counts.
        coarse = max((subject.precision, precision), key=epsilon)
        judged = case if coarse == subject.precision else Turn(moved, case.x)
        matches_turn(judged, as_floats(output))


@check("rotary.input-untouched")
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = draw_turn(subject, draw)
    first = case.output()  # the probe compares the input with a copy after every call
    moves_as_declared(case, first)
    given = case.probe.output(case.x, case.positions)
    kept = given.copy()
    Turn(case.probe, case.x + 1.0, case.positions).output()
    equal(given, kept, what="output of a call, looked at after another,")
    equal(case.output(), first, what="output of another call")
