"""Checks of the chapter `cache`: what is left of earlier decodings, and what a step computes."""

from functools import partial
from typing import Any

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.judging.check import check
from attentest.suite.test_cache.cases import (
    Program,
    build,
    draw_program,
    draw_sizes,
    matches_reference,
    single_steps,
)
from attentest.testing.assertions import holds
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.contract import Counted
from attentest_spec.parameters import head_width


@check("cache.reset", examples=2)
def test_reset(subject: Subject, draw: Draw) -> None:
    # Room for a sentence that goes on with the last one: a wrong answer is clearer than an error.
    sizes = draw_sizes(subject, draw, max_length=min(24, subject.limits.length or 24))
    probe = build(subject, draw, sizes)
    rows = 3 if sizes.heads != 3 else 4
    long = draw_program(draw, sizes, [2, 1, 1, 1], rows=rows, words=draw.length(5, 6))
    short = draw_program(draw, sizes, single_steps(3), rows=rows - 1, words=2)
    alike = draw_program(draw, sizes, long.chunks, rows=rows, words=long.source.shape[1])
    for program, what in (
        (long, "output of the first source"),
        (short, "output of a shorter source after a longer one"),
        (alike, "output of a longer source after a shorter one"),
        (long, "output of another source of the same length"),
        (long, "output of the same source again"),
    ):
        matches_reference(probe, program, what)


@check("cache.new-parameters", examples=2)
def test_new_parameters(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw)
    probe = build(subject, draw, sizes)
    program = draw_program(draw, sizes, [1, 1, 1])
    matches_reference(probe, program)
    probe.load(draw.parameters("cached_decoding", sizes))
    matches_reference(probe, program, "output after other parameters were loaded")


@check("cache.own-cache", examples=2)
def test_own_cache(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw)
    one, other = build(subject, draw, sizes), build(subject, draw, sizes)
    program = draw_program(draw, sizes, [1, 1, 1])
    for probe in (one, other, one):
        matches_reference(probe, program, "output of one of two models")


@check("cache.memory-once", examples=1)
def test_memory_once(subject: Subject, draw: Draw) -> None:
    few, many = 2, _longest(subject, 6)
    sizes = _sizes(subject, draw)
    probe = build(subject, draw, sizes)
    costs = [
        _cost_of_step(probe, draw_program(draw, sizes, [2, 1], rows=2, words=words))
        for words in (few, many)
    ]
    found = (costs[1] - costs[0]) / (2 * sizes.layers * (many - few))
    projected = 4 * sizes.d_model * _inner(subject, sizes)
    holds(
        found <= projected / 2,
        f"A step costs {found:.0f} operations more for each token of the source, row and layer; "
        f"computing its key and value again costs {projected}.",
    )


@check("cache.rows-once", examples=1)
def test_rows_once(subject: Subject, draw: Draw) -> None:
    few, many = 2, _longest(subject, 6)
    sizes = _sizes(subject, draw)
    probe = build(subject, draw, sizes)
    costs = [
        _cost_of_step(probe, draw_program(draw, sizes, [length - 1, 1], rows=2, words=2))
        for length in (few, many)
    ]
    found = (costs[1] - costs[0]) / (2 * sizes.layers * (many - few))
    projected = 4 * sizes.d_model * _inner(subject, sizes)
    # The row of an earlier token costs five projections and more; its key and value alone cost two.
    holds(
        found <= 2 * projected,
        f"A step costs {found:.0f} operations more for each earlier token, row and layer; its key "
        f"and value cost {projected}, and with everything else its row is computed again.",
    )


def _sizes(subject: Subject, draw: Draw) -> Sizes:
    """Draw sizes with heads so wide that projections cost more than attention does."""
    return draw_sizes(
        subject, draw, head_width=8, d_ff=16, heads=max(1, subject.limits.fewest_heads)
    )


def _longest(subject: Subject, wanted: int) -> int:
    """Return the `wanted` length; absent where it is not supported."""
    if wanted > (subject.limits.length or wanted):
        raise Absent(f"{subject.name} is limited to length {subject.limits.length}")
    return wanted


def _inner(subject: Subject, sizes: Sizes) -> int:
    """Return the columns of all heads."""
    return head_width(sizes, subject.choices) * sizes.heads


def _cost_of_step(probe: Probe, program: Program) -> int:
    """Return the operations of the last chunk, as those that the program has more with it."""
    *before, last = program.chunks
    shorter = program.but(chunks=before, target=program.target[:, :-last])
    return _cost(probe, program) - _cost(probe, shorter)


def _cost(probe: Probe, program: Program) -> int:
    if not isinstance(probe.part, Counted):
        raise Absent(f"{probe.subject.name} does not count its operations")
    return probe.do("counting its operations", partial(_operations, program))


def _operations(program: Program, part: Any) -> int:
    return int(part.flops(program.inputs))
