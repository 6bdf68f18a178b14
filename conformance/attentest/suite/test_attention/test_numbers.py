"""Checks of the chapter `attention`: the numbers, in every precision."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.harness.tolerances import fits, largest
from attentest.judging.check import check
from attentest.suite.test_attention.cases import (
    HIDING_FIRST,
    OPEN_FIRST,
    depends_on_values,
    draw_call,
    require_large_scores,
    require_shapes,
)
from attentest.testing.assertions import finite, holds, matches, near, same_shape
from attentest.testing.common import Call, half_precisions, matches_in_precision, same_precision
from attentest.testing.draw import Draw
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, SizesInUse, at_sizes_in_use
from attentest_spec.attention import scores


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    case = draw_call(
        subject,
        draw,
        scale=1.0,
        lengths=(size.length, size.length),
        width=size.width // size.heads,
        samples=size.batch,
        heads=size.heads,
    )
    matches(case.probe, *case.inputs, actual=case.output())


@check(
    "attention.formula",
    examples=10,
    in_use=at_sizes_in_use(_formula_in_use, WIDE, MANY, LONG),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    # Several keys, as the score of a single one does not count.
    case = draw_call(subject, draw, lengths=(draw.length(), draw.at_least(3)))
    matches(case.probe, *case.inputs, actual=case.output())
    lengths = draw.at_least(2), draw.at_least(4)
    wide = draw_call(subject, draw, width=72, scale=1.0, lengths=lengths, heads=draw.several())
    matches(wide.probe, *wide.inputs, actual=wide.output())


@check("attention.shapes", examples=5)
def test_shapes(subject: Subject, draw: Draw) -> None:
    ones = draw.choose((False, True))
    case = draw_call(subject, draw, kinds=("none", "padding"), lengths=(1, 1) if ones else None)
    output, weights = case.probe(*case.inputs)
    same_shape(output, (*case.query.shape[:-1], case.value.shape[-1]))
    same_precision(case.probe, output)
    depends_on_values(case, output)
    if weights is not None:
        same_shape(weights, case.keep.shape, what="weights")


@check("attention.stable-for-large-scores")
def test_stable_for_large_scores(subject: Subject, draw: Draw) -> None:
    require_large_scores(subject)
    lengths = draw.length(2), draw.length(min(3, subject.limits.length or 3))
    case = draw_call(subject, draw, kinds=("none",), scale=1.0, lengths=lengths)
    raw = largest(scores(case.query, case.key, subject.choices)) or 1.0
    size = draw.choose((1e6, 1e3, 100.0, 800.0))
    for sign in (1.0, -1.0):  # of three scores two have one sign, and are the largest with one
        query = cast(case.query * sign * (size / raw), case.probe.precision)
        inputs = (query, case.key, case.value, None)
        actual = case.output(*inputs)
        finite(actual)
        matches(case.probe, *inputs, actual=actual)
    # Equal scores of any size share the weight equally.
    same = np.broadcast_to(np.abs(case.key[..., :1, :]) + 1.0, case.key.shape).copy()
    mean = np.broadcast_to(
        case.value.mean(axis=-2, keepdims=True), (*query.shape[:-1], case.value.shape[-1])
    )
    alike = np.full_like(query, -size)
    # Kernels sum equal products in different orders, so the scores are equal up to rounding alone.
    rounded = 1.0 + largest(scores(alike, same, subject.choices))
    near(
        subject,
        case.output(alike, same, case.value, None),
        mean,
        terms=sum(case.key.shape[-2:]),
        size=largest(case.value) * rounded,
        what="output for equal scores",
        precision=case.arithmetic,
    )


@check("attention.softmax-arithmetic")
def test_softmax_arithmetic(subject: Subject, draw: Draw) -> None:
    if subject.precision != "float64":
        raise Absent(f"a softmax in float32 is no coarser than {subject.precision}")
    case = draw_call(subject, draw, scale=1.0, lengths=(draw.long(5), draw.long(7)))
    actual = case.output()
    declared = subject.choices.softmax_arithmetic
    exact = subject.choices.but(softmax_arithmetic="as-computed")
    single = subject.choices.but(softmax_arithmetic="float32")
    # What is exact lies within the error of a softmax in float32 too: the finer one is asked first.
    # Where a query sees one key, whose weight is 1, both give the same, and show nothing.
    rounded = case.probe.expected(*case.inputs, choices=single).output
    shows = not fits(case.probe, *case.inputs, actual=rounded, choices=exact)
    fine = fits(case.probe, *case.inputs, actual=actual, choices=exact)
    if shows and (fine or fits(case.probe, *case.inputs, actual=actual, choices=single)):
        shown = "as-computed" if fine else "float32"
        holds(
            shown == declared,
            f"softmax_arithmetic is declared as {declared}; the numbers show {shown}.",
            actual=actual,
        )
    matches(case.probe, *case.inputs, actual=actual)


@check("attention.value-width")
def test_value_width(subject: Subject, draw: Draw) -> None:
    require_shapes(subject)
    lengths = draw.length(), draw.length(2)
    case = draw_call(subject, draw, kinds=OPEN_FIRST, scale=1.0, lengths=lengths)
    width = case.query.shape[-1] + draw.choose((3, 1, 7))
    value = draw.floats(*case.value.shape[:-1], width)
    inputs = (case.query, case.key, value, case.mask)
    matches(case.probe, *inputs, actual=case.output(*inputs))


@check("attention.cross-lengths")
def test_cross_lengths(subject: Subject, draw: Draw) -> None:
    require_shapes(subject)
    kinds = ("per-sample", "padding", "none")
    few, many = draw.length(), draw.long(523)
    square = draw.long()
    for lengths in (draw.lengths(), (square, square), (many, few), (few, many)):
        case = draw_call(subject, draw, kinds=kinds, lengths=lengths, scale=1.0)
        matches(case.probe, *case.inputs, actual=case.output())


@check("attention.one-key")
def test_one_key(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, kinds=("none",))
    batch, heads, keys = case.key.shape[:3]
    last = draw.integer(0, keys - 1)
    mask = np.zeros((batch, 1, 1, keys), dtype=bool)
    mask[..., last] = True
    wanted = np.broadcast_to(
        case.value[..., last : last + 1, :],
        (batch, heads, case.query.shape[-2], case.value.shape[-1]),
    )
    alone = slice(last, last + 1)
    first = case.output(case.query, case.key[..., alone, :], case.value[..., alone, :], None)
    left = case.output(case.query, case.key, case.value, mask)
    # A weight of 1 that a kernel gets by its own exponential and a division is rounded.
    rounded = partial(near, subject, expected=wanted, terms=2, precision=case.arithmetic)
    rounded(first, what="output for a single key")
    rounded(left, what="output for a single key left")


@check("attention.half-precision")
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for known in half_precisions(subject):
        for scale, kinds in ((1.0, HIDING_FIRST), (4.0, OPEN_FIRST)):
            matches_in_precision(partial(_call, subject, draw, scale=scale, kinds=kinds), known)


@check("attention.float32")
def test_float32(subject: Subject, draw: Draw) -> None:
    matches_in_precision(lambda precision: _call(subject, draw, precision), "float32")


def _call(
    subject: Subject,
    draw: Draw,
    precision: str,
    scale: float = 1.0,
    kinds: Sequence[str] = OPEN_FIRST,
) -> Call:
    case = draw_call(
        subject,
        draw,
        kinds=kinds,
        lengths=(draw.length(), draw.length(min(2, subject.limits.length or 2))),
        scale=scale,
        precision=precision,
    )
    return case.probe, case.inputs
