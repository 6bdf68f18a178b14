"""Checks of the chapter `cache`: steps, chunks, positions, and the order of rows."""

import numpy as np

from attentest.harness.errors import Absent, BackendError
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_cache.cases import (
    build,
    call,
    draw_beams,
    draw_program,
    draw_sizes,
    matches_reference,
    matches_where_declared,
    single_steps,
)
from attentest.suite.test_model.cases import require_dropout, require_hiding
from attentest.testing import invariants
from attentest.testing.assertions import finite, holds, matches
from attentest.testing.common import (
    Call,
    dropout_off_in_evaluation,
    half_precisions,
    matches_in_precision,
    same_precision,
)
from attentest.testing.draw import LONG, Draw
from attentest.testing.refusal import require_index_errors
from attentest.testing.sizes_in_use import MANY, WIDE, SizesInUse, at_sizes_in_use
from attentest_spec.parameters import learned_positions
from attentest_spec.setting import Array


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    """Judge a prompt and one more token."""
    require_hiding(subject)
    sizes, rows = size.sizes(subject), min(size.batch, 3)
    chunks = [size.length - 1, 1] if size.length > 1 else [1]
    program = draw_program(draw, sizes, chunks, rows=rows, words=size.length)
    matches_reference(build(subject, draw, sizes), program)


@check("cache.formula", in_use=at_sizes_in_use(_formula_in_use, WIDE, MANY))
def test_formula(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw)
    matches_reference(
        build(subject, draw, sizes), draw_program(draw, sizes, single_steps(draw.length(4, 6)))
    )


@check("cache.chunks", examples=2)
def test_chunks(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw)
    probe = invariants.build_with_parameters(subject, draw, "cached_decoding", sizes)
    length = draw.length(5, 6)
    whole = draw_program(draw, sizes, [length])
    expected = call(probe, whole)
    for chunks in ([2, *single_steps(length - 2)], [1, 3, length - 4], [length - 2, 2]):
        program = whole.but(chunks=chunks)
        invariants.agree_up_to_rounding(
            probe,
            *program.inputs,
            actual=call(probe, program),
            expected=expected,
            what=f"output in chunks of {', '.join(map(str, chunks))}",
        )


@check("cache.positions", examples=2)
def test_positions(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw)
    length = draw.length(5, 6)
    program = draw_program(draw, sizes, single_steps(length))
    same = np.broadcast_to(program.target[:, :1], program.target.shape).copy()
    probe = build(subject, draw, sizes)
    for chunks in (program.chunks, draw.choose(([2, 1, length - 3], [1, 2, length - 3]))):
        repeated = program.but(target=same, chunks=chunks)
        matches_reference(probe, repeated, "output for one repeated token")


@check("cache.long", examples=1)
def test_long(subject: Subject, draw: Draw) -> None:
    length = draw.long(37)
    sizes = draw_sizes(subject, draw, max_length=length)
    program = draw_program(draw, sizes, single_steps(length))
    matches_reference(build(subject, draw, sizes), program, f"output of {length} steps")
    length = draw.long(LONG)
    sizes = draw_sizes(subject, draw, layers=1, max_length=length)
    program = draw_program(draw, sizes, [length - 3, 1, 1, 1])
    matches_reference(build(subject, draw, sizes), program, f"output after {length - 3} tokens")


@check("cache.reorder", examples=2)
def test_reorder(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw, heads=draw.several())
    first = draw.choose((2, 1, 3))
    chunks = [first, 1, 1, 1, 1] if first < 3 else [3, 1, 1, 1]
    program = draw_beams(draw, sizes, chunks)
    orders = [[1, 1, 0, 4, 4], [0, 2, 2, 3, 4], [0, 1, 2, 3, 4], [2, 0, 1, 4, 3]]
    shuffled = [orders[int(number)] for number in draw.rng.permutation(len(chunks) - 2)]
    program = program.but(origin=[range(5), orders[0], *shuffled])
    matches_reference(build(subject, draw, sizes), program, "output after rows were reordered")


@check("cache.batch", examples=2)
def test_batch(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw)
    probe = invariants.build_with_parameters(subject, draw, "cached_decoding", sizes)
    program = draw_program(draw, sizes, [draw.choose((2, 1)), 1, 1])
    whole = call(probe, program)
    for number in range(len(whole)):
        alone = program.row(number)
        invariants.agree_up_to_rounding(
            probe,
            *alone.inputs,
            actual=whole[number : number + 1],
            expected=call(probe, alone),
            what=f"output of row {number} in its batch",
        )


@check("cache.sessions", examples=2)
def test_sessions(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw)
    program = draw_program(draw, sizes, single_steps(6)).but(after=[-1, -1, 0, 1, 2, 3])
    probe = build(subject, draw, sizes)
    matches_where_declared(probe, program, "cache_sessions", what="output of two that take turns")


@check("cache.continued-twice", examples=2)
def test_continued_twice(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw)
    program = draw_program(draw, sizes, [2, 1, 1, 1]).but(after=[-1, 0, 0, 1])
    probe = build(subject, draw, sizes)
    matches_where_declared(
        probe, program, "cache_update", what="output after one prefix was continued twice"
    )


@check("cache.shapes", examples=2)
def test_shapes(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw)
    probe = invariants.build_with_parameters(subject, draw, "cached_decoding", sizes)
    for chunks in ([1], [2, 1], [1, 2]):
        program = draw_program(draw, sizes, chunks, rows=draw.choose((1, 2)), words=draw.length())
        output = call(probe, program)
        same_precision(probe, output)
        finite(output)


@check("cache.single-precision", examples=2)
def test_single_precision(subject: Subject, draw: Draw) -> None:
    _in_precision(subject, draw, "float32")


@check("cache.half-precision", examples=2)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        _in_precision(subject, draw, precision)


def _in_precision(subject: Subject, draw: Draw, precision: str) -> None:
    def make(wanted: str) -> Call:
        sizes = draw_sizes(subject, draw, layers=1)
        probe = build(subject, draw, sizes, precision=wanted)
        return probe, draw_program(draw, sizes, [2, 1, 1]).inputs

    matches_in_precision(make, precision)


@check("cache.dropout-off", examples=2)
def test_dropout_off(subject: Subject, draw: Draw) -> None:
    require_dropout(subject)
    sizes = draw_sizes(subject, draw, layers=1)
    inputs = draw_program(draw, sizes, [2, 1, 1]).inputs
    dropout_off_in_evaluation(subject, draw, "cached_decoding", sizes, *inputs)


@check("cache.beyond-length", examples=2)
def test_beyond_length(subject: Subject, draw: Draw) -> None:
    require_index_errors(subject)
    limit = subject.limits.length
    most = draw.integer(3, min(5, limit or 5)) if limit is None or limit >= 3 else limit
    sizes = draw_sizes(subject, draw, max_length=most)
    probe = build(subject, draw, sizes)
    program = draw_program(draw, sizes, [most - 1, 1, 1], words=draw.length(1, most))
    try:
        actual: Array = probe.output(*program.inputs)
    except (Absent, BackendError):
        return
    learned = learned_positions(subject.choices)
    holds(not learned, f"The position {most} was not refused, and {most} positions were learned.")
    matches(probe, *program.inputs, actual=actual, what=f"output beyond {most} positions")
