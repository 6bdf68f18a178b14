"""Checks of the chapter `positional_encoding`: tables that are trained, saved and moved."""

import numpy as np

from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_positional_encoding.cases import (
    EncodingCall,
    draw_call,
    matches_table,
    separates_positions,
)
from attentest.testing.assertions import holds
from attentest.testing.common import same_precision
from attentest.testing.draw import Draw
from attentest.testing.gradients import every_parameter_reached
from attentest.testing.moves import follows_to_device, moves_once
from attentest_spec.parameters import learned_positions
from attentest_spec.precision import epsilon


@check("positional_encoding.not-trained", examples=2)
def test_not_trained(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, most=draw.length(7, 9))
    separates_positions(case, case.added())
    held = case.probe.do("listing what it holds", lambda part: part.inventory())
    trained = {
        name: tuple(facts["shape"])
        for name, facts in held["parameters"].items()
        if facts.get("trained", True)
    }
    if learned_positions(subject.choices):
        sizes = case.probe.sizes
        wanted = sizes.max_length * sizes.d_model
        enough = any(np.prod(shape, dtype=int) >= wanted for shape in trained.values())
        holds(enough, f"A learned table is declared; the trained parameters are {trained}.")
        if "gradient" in case.probe.part.capabilities:
            every_parameter_reached(case.probe, case.x, draw=draw)
    else:
        holds(not trained, f"{case.option} is declared; there are trained parameters: {trained}.")


@check("positional_encoding.not-saved", examples=2)
def test_not_saved(subject: Subject, draw: Draw) -> None:
    most = draw.length(13, 20)  # more positions than columns: a frequency each may be saved
    case = draw_call(subject, draw, most=most, waves=True)
    separates_positions(case, case.added())
    held = case.probe.do("listing what it saves", lambda part: part.inventory())
    saved = {
        name: tuple(shape)
        for name, shape in held["state"].items()
        if np.prod(shape, dtype=int) >= most
    }
    holds(not saved, f"What is saved grows with the longest length, here {most}: {saved}.")


@check("positional_encoding.moved-once", examples=1)
def test_moved_once(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, lengths=(2, 5))
    case.added()  # tables may be made by the first call
    moves_once(case.probe, case.x)


@check("positional_encoding.follows-moves")
def test_follows_moves(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, lengths=(2, 5))
    follows_to_device(case.probe, case.x)
    others = [
        one
        for one in ("float32", "float64", "bfloat16")
        if one in subject.limits.precisions and one != subject.precision
    ]
    if not others:
        return
    precision = others[0]
    _independent_of_others(subject, draw, precision)
    moved = case.probe.become(
        f"moving it to {precision}", lambda part: part.moved(precision=precision), precision
    )
    x = np.zeros_like(case.x)
    output = moved.output(x)
    same_precision(moved, output)
    # What was rounded before the move stays rounded: the coarser precision of the two counts.
    coarse = max((subject.precision, precision), key=epsilon)
    judged = case if coarse == subject.precision else EncodingCall(moved, x)
    matches_table(judged, as_floats(output), x=x)


def _independent_of_others(subject: Subject, draw: Draw, precision: str) -> None:
    """Demand the declared rows after another part has been asked for as many, less exactly.

    No other check draws this width: a table that is shared is made here.
    """
    for one in (precision, subject.precision):
        case = draw_call(subject, draw, lengths=(5, 5), widths=(14,), precision=one)
        x = np.zeros_like(case.x)
        matches_table(case, case.added(x), x=x)
