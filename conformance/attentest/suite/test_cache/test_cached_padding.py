"""Checks of the chapter `cache`: padding of both sides, and the position of what follows it."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.judging.check import check
from attentest.suite.test_cache.cases import (
    Program,
    build,
    call,
    draw_beams,
    draw_program,
    draw_sizes,
    matches_reference,
    real,
    single_steps,
)
from attentest.testing.common import fits_one_option
from attentest.testing.draw import Draw


@check("cache.prompt-padding", examples=2)
def test_prompt_padding(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw)
    probe = build(subject, draw, sizes)
    prompt = draw.choose(([3, 1, 1, 1], [2, 2, 1, 1], [3, 2, 1]))
    matches_reference(probe, _pad_prompt(probe, draw_program(draw, sizes, prompt)))
    beams = _pad_prompt(probe, draw_beams(draw, sizes, [3, 1, 1]))
    order = [1, 1, 0, 4, 3]
    matches_reference(probe, beams.but(origin=[range(5), order, order]), "output of padded beams")
    anywhere = draw_program(draw, sizes, single_steps(5))
    target = draw.target(len(anywhere.target), 5, sizes)
    matches_reference(probe, anywhere.but(target=target))


def _pad_prompt(probe: Probe, program: Program) -> Program:
    """Return the program with padding at the end of the first chunk, in all rows but the first."""
    target, end = program.target.copy(), program.chunks[0]
    for number in range(1, len(target)):
        target[number, end - 1 - number % (end - 1) : end] = probe.sizes.target_pad
    target[:, 0] = program.target[:, 0]
    return program.but(target=target)


@check("cache.left-padding", examples=2)
def test_left_padding(subject: Subject, draw: Draw) -> None:
    # A query before the first token sees no key: what is not a number there spreads to the rest.
    harmless = subject.choices.fully_masked_row in ("uniform", "zero")
    sizes = draw_sizes(subject, draw, **({} if harmless else {"layers": 1}))
    program = draw_program(draw, sizes, draw.choose(([3, 1, 1], single_steps(5), [2, 2, 1])))
    matches_reference(build(subject, draw, sizes), _pad_left(program, sizes.target_pad))


def _pad_left(program: Program, pad: int) -> Program:
    """Return the program with no padding in the first row, one in the second, then two."""
    target = program.target.copy()
    for number in range(1, len(target)):
        target[number, : min(number, 2)] = pad
    return program.but(target=target)


@check("cache.source-padding", examples=2)
def test_source_padding(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(subject, draw)
    length = draw.length(3, 6)
    program = draw_program(draw, sizes, draw.choose(([2, 1, 1], single_steps(4))), words=length)
    kept = np.arange(length) < 1 + np.arange(len(program.target))[:, None] % (length - 1)
    tokens = draw.tokens(len(kept), length, sizes.source_vocabulary, sizes.source_pad)
    padded = program.but(source=np.where(kept, tokens, sizes.source_pad))
    matches_reference(build(subject, draw, sizes), padded)


@check("cache.positions-of-padding", examples=2)
def test_positions_of_padding(subject: Subject, draw: Draw) -> None:
    if subject.choices.positional_encoding == "none":
        raise Absent("without positions there is nothing to count")
    sizes = draw_sizes(subject, draw)
    probe = build(subject, draw, sizes)
    program = _pad_prompt(probe, draw_program(draw, sizes, [3, 1, 1]))
    if "cache_positions" not in subject.declared:
        matches_reference(probe, program)
        return
    fits_one_option(
        probe,
        *program.inputs,
        actual=call(probe, program),
        choice="cache_positions",
        without={},
        rows=real(probe, program),
    )
