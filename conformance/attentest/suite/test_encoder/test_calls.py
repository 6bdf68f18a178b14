"""Checks of the chapter `encoder`: shapes, order, samples and the caller's arrays."""

import numpy as np

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
from attentest.testing.layer_calls import LayerCall, draw_call, permute_mask, rows_agree
from attentest_spec.setting import Array


@check("encoder.permutation-law", examples=6)
def test_permutation_law(subject: Subject, draw: Draw) -> None:
    kinds = ("none", "padding", "per-sample")
    case = draw_call(subject, draw, LAYER, mapped=False, kinds=kinds, shortest=2)
    order = draw_order(draw, case.x.shape[1])
    before = case.output()
    moved = case.but(x=case.x[:, order], mask=permute_mask(case.mask, order))
    rows_agree(
        moved, moved.output(), before[:, order], what="output after reordering the positions"
    )
    depends_on_visible_positions(draw, case, before)


@check("encoder.batch-independence", examples=4)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    kinds, batch = ("padding",), draw.choose((2, 3))
    case = draw_call(subject, draw, STACK, mapped=False, kinds=kinds, hiding=True, batch=batch)
    case = case.but(mask=_different_padding(case))
    before = case.output()
    sample = draw.integer(0, len(case.x) - 1)
    others = np.arange(len(case.x)) != sample
    where = np.broadcast_to(others[:, None], case.rows.shape)
    after = case.but(x=replace_positions(draw, case.x, where)).output()
    output_unchanged(
        before, after, case.rows & ~where, what="of a sample after changing the others"
    )
    for own in (slice(number, number + 1) for number in range(len(case.x))):
        alone = case.but(x=case.x[own], mask=None if case.mask is None else case.mask[own])
        rows_agree(alone, alone.output(), before[own], what="output of a sample alone")
    depends_on_visible_positions(draw, case, before)


def _different_padding(case: LayerCall) -> Array:
    """Return the padding mask (B, 1, 1, L) with other keys hidden in each sample than in the last.

    Padding stays at the end where the backend is limited to that.
    """
    mask = np.array(case.mask)
    keys = mask.shape[-1]
    if "mask" in case.probe.subject.limits.right_padded:
        lengths = 1 + (mask[0].sum() - 1 + np.arange(len(mask))) % keys
        return np.asarray(np.arange(keys) < lengths[:, None, None, None])
    for number, own in enumerate(mask):
        own[..., number % keys] = False
        own[..., (number + 1) % keys] = True
    return mask


@check("encoder.shapes", examples=4)
def test_shapes(subject: Subject, draw: Draw) -> None:
    one = draw.choose(("batch", "length", "both", "neither"))
    case = draw_call(
        subject,
        draw,
        STACK,
        mapped=False,
        kinds=("none", "padding"),
        batch=1 if one in ("batch", "both") else draw.choose((2, 3)),
        lengths=(1 if one in ("length", "both") else draw.length(2), 1),
    )
    before = case.output()
    same_precision(case.probe, before)
    depends_on_visible_positions(draw, case, before)


@check("encoder.input-untouched", examples=4)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, STACK, mapped=False, kinds=("padding", "none"), shortest=2)
    before = case.output().copy()
    equal(case.output(), before, what="output of the second call")
    depends_on_visible_positions(draw, case, before)
