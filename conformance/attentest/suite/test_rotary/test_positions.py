"""Checks of the chapter `rotary`: positions that are given, and lengths."""

import numpy as np

from attentest.harness.errors import BackendError
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_rotary.cases import (
    GIVEN,
    Turn,
    draw_positions,
    draw_sizes,
    draw_turn,
    matches_turn,
    moves_as_declared,
    same_turns,
    supported_kinds,
)
from attentest.testing.assertions import equal
from attentest.testing.draw import Draw
from attentest.testing.refusal import require_index_errors
from attentest.testing.rotary_widths import served_widths
from attentest_spec.setting import Tokens


@check("rotary.positions-given")
def test_positions_given(subject: Subject, draw: Draw) -> None:
    kind = supported_kinds(subject, GIVEN)[-1]
    # As many sequences as heads in some examples, where a wrong axis raises no error.
    count = draw.several()
    case = draw_turn(subject, draw, kinds=(kind,), batch=draw.choose((count, 3)), heads=count)
    matches_turn(case)


@check("rotary.positions-restart")
def test_positions_restart(subject: Subject, draw: Draw) -> None:
    kind = supported_kinds(subject, ("per-sample", "shared"))[0]
    case = draw_turn(subject, draw, lengths=(3, 9), kinds=(kind,))
    batch, _, length, _ = case.x.shape
    rows = [_restarting(draw, length) for _ in range(batch)]
    positions = np.stack(rows if kind == "per-sample" else rows[:1] * batch)
    matches_turn(Turn(case.probe, case.x, positions))


def _restarting(draw: Draw, length: int) -> Tokens:
    """Draw positions (L) of several documents in one row, of which one skips numbers."""
    cut = draw.integer(min(2, length - 1), length - 1)  # one token alone starts nothing again
    first, second = np.arange(cut), np.arange(length - cut)
    return np.concatenate([first * draw.choose((1, 2)), second]).astype(np.int64)


@check("rotary.default-positions")
def test_default_positions(subject: Subject, draw: Draw) -> None:
    supported_kinds(subject, ("none",))
    case = draw_turn(subject, draw, kinds=supported_kinds(subject, GIVEN))
    default = Turn(case.probe, case.x)
    given = Turn(case.probe, case.x, np.ascontiguousarray(default.places()))
    output = default.output()
    moves_as_declared(default, output)
    same_turns(given, given.output(), output, times=2, what="turned x with positions given")


@check("rotary.one-token")
def test_one_token(subject: Subject, draw: Draw) -> None:
    kind = supported_kinds(subject, GIVEN)[-1]
    case = draw_turn(subject, draw, kinds=(kind,), batch=draw.choose((2, 3)))
    whole = case.expected()
    positions = np.asarray(case.positions)
    for token in range(case.x.shape[2]):
        place = slice(token, token + 1)
        one = Turn(case.probe, case.x[:, :, place], positions[:, place])
        dynamic = subject.choices.rotary_scaling == "dynamic-ntk"
        wanted = one.expected() if dynamic else whole[:, :, place]
        same_turns(one, one.output(), wanted, what="turned token")


@check("rotary.longer-than-before")
def test_longer_than_before(subject: Subject, draw: Draw) -> None:
    most = min(draw.choose((40, 90)), subject.limits.length or 90)
    case = draw_turn(subject, draw, lengths=(2, 5), kinds=("none",), most=most)
    first = matches_turn(case)
    batch, heads, _, width = case.x.shape
    for length in (min(13, most), most, min(9, most)):
        matches_turn(Turn(case.probe, draw.floats(batch, heads, length, width)))
    given = [one for one in ("per-sample", "offset") if one in subject.limits.positions]
    for kind in given:
        positions = draw_positions(draw, kind, batch, case.x.shape[2], most)
        matches_turn(Turn(case.probe, case.x, positions))
    equal(case.output(), first, what="turned x, after longer inputs,")


@check("rotary.tables-not-shared")
def test_tables_not_shared(subject: Subject, draw: Draw) -> None:
    # No other check has this length: a table that is shared is made here.
    length, supported = min(23, subject.limits.length or 23), subject.limits.precisions
    coarse = [one for one in ("bfloat16", "float32") if one in supported]
    for precision in dict.fromkeys([*coarse, subject.precision]):
        for width in served_widths(subject.choices, (24, 12, 16, 8, 32, 64))[:2]:
            sizes = draw_sizes(subject, draw, width, 2, length, trained=(2048, 640))
            for factor in (3.0, 5.0):
                part = subject.part("rotary", sizes.but(rotary_factor=factor), precision=precision)
                x = draw.floats(1, 2, length, width, precision=precision)
                matches_turn(Turn(part, x))


@check("rotary.too-long")
def test_too_long(subject: Subject, draw: Draw) -> None:
    require_index_errors(subject)
    length = draw.length(4, 9)
    most = draw.integer(2, length - 1)
    width = served_widths(subject.choices)[0]
    probe = subject.part("rotary", draw_sizes(subject, draw, width, 2, most))
    kinds = supported_kinds(subject, ("none", "offset"))
    x = draw.floats(3, 2, length, width)
    positions = None if draw.choose(kinds) == "none" else np.tile(np.arange(length), (3, 1))
    case = Turn(probe, x, positions)
    try:
        output = case.output()
    except BackendError:
        return
    matches_turn(case, output)
