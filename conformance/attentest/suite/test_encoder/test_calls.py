"""Checks of the chapter `encoder`: shapes, order, samples and the caller's arrays."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_encoder.cases import LAYER, STACK
from attentest.testing.assertions import equal
from attentest.testing.common import same_precision
from attentest.testing.dependence import (
    depends_on_visible_positions,
    output_unchanged,
    replace_positions,
)
from attentest.testing.draw import Draw
from attentest.testing.invariants import draw_order
from attentest.testing.layer_calls import draw_call, open_mask, permute_mask, rows_agree
from attentest_spec.order import ordered


@check("encoder.permutation-law", examples=2)
def test_permutation_law(subject: Subject, draw: Draw) -> None:
    if ordered(subject.choices):
        raise Absent(f"the order of keys counts in the attention of {subject.name}")
    kinds = ("none", "padding", "per-sample")
    shortest = min(3, subject.limits.length or 3)
    case = draw_call(subject, draw, LAYER, mapped=False, kinds=kinds, shortest=shortest)
    order = draw_order(draw, case.x.shape[1])
    before = case.output()
    moved = case.but(x=case.x[:, order], mask=permute_mask(case.mask, order))
    rows_agree(
        moved, moved.output(), before[:, order], what="output after reordering the positions"
    )
    depends_on_visible_positions(draw, case, before)


@check("encoder.batch-independence", examples=2)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    kinds, batch = ("padding",), draw.choose((2, 3))
    case = draw_call(subject, draw, STACK, mapped=False, kinds=kinds, hiding=True, batch=batch)
    assert case.mask is not None
    mask = draw.differing(case.mask)
    case = case.but(mask=mask)
    before = case.output()
    sample = draw.integer(0, len(case.x) - 1)
    others = np.arange(len(case.x)) != sample
    where = np.broadcast_to(others[:, None], case.rows.shape)
    after = case.but(x=replace_positions(draw, case.x, where)).output()
    output_unchanged(
        before, after, case.rows & ~where, what="of a sample after changing the others"
    )
    for own in (slice(number, number + 1) for number in range(len(case.x))):
        alone = case.but(x=case.x[own], mask=mask[own])
        rows_agree(alone, alone.output(), before[own], what="output of a sample alone")
    depends_on_visible_positions(draw, case, before)


@check("encoder.shapes", examples=2)
def test_shapes(subject: Subject, draw: Draw) -> None:
    kinds, batch = ("none", "padding"), draw.choose((2, 3))
    case = draw_call(subject, draw, STACK, mapped=False, kinds=kinds, batch=batch, shortest=2)
    for samples, length in ((batch, case.x.shape[1]), (1, case.x.shape[1]), (batch, 1), (1, 1)):
        x = case.x[:samples, :length]
        mask = None if case.mask is None else open_mask(subject, samples, length, length)
        same_precision(case.probe, case.but(x=x, mask=mask).output())
    depends_on_visible_positions(draw, case, case.output())


@check("encoder.input-untouched", examples=2)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, STACK, mapped=False, kinds=("padding", "none"), shortest=2)
    before = case.output().copy()
    equal(case.output(), before, what="output of the second call")
    depends_on_visible_positions(draw, case, before)
