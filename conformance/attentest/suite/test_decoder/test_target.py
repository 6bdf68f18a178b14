"""Checks of the chapter `decoder`: which steps of the target a step depends on."""

import numpy as np

from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_decoder.cases import FREE, LAYER, PADDED, STACK, TARGET
from attentest.testing.assertions import holds
from attentest.testing.dependence import (
    depends_on_visible_positions,
    gradient_reach,
    output_unchanged,
    poison,
    replace_positions,
)
from attentest.testing.draw import Draw
from attentest.testing.layer_calls import draw_call, open_mask, rows_agree


@check("decoder.causality", examples=6)
def test_causality(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, STACK, mapped=False, kinds=TARGET, shortest=2)
    steps = np.arange(case.x.shape[1])
    step = draw.integer(1, len(steps) - 1)
    where = np.broadcast_to(steps == step, case.rows.shape)
    before = case.output()
    after = case.but(
        x=replace_positions(draw, case.x, where, scale=poison(case.probe, draw))
    ).output()
    output_unchanged(
        before, after, case.rows & (steps < step), what=f"before step {step}, which is changed"
    )
    depends_on_visible_positions(draw, case, before)


@check("decoder.causality-by-gradient", examples=5)
def test_causality_by_gradient(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, STACK, mapped=False, kinds=("causal",), shortest=2)
    steps = np.arange(case.x.shape[1])
    step = draw.integer(0, len(steps) - 2)
    reached = gradient_reach(draw, case, step)
    holds(
        not reached[:, steps > step].any(),
        f"The output of step {step} has a gradient to {int(reached[:, steps > step].sum())} "
        "later steps.",
    )
    if case.probe.sizes.d_model > 2:
        holds(reached[:, step].all(), f"The output of step {step} has no gradient to itself.")


@check("decoder.target-padding", examples=14)
def test_target_padding(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, STACK, mapped=False, kinds=PADDED, shortest=2, hiding=True)
    before = case.output()
    other = replace_positions(draw, case.x, ~case.rows, poison(case.probe, draw))
    after = case.but(x=other).output()
    output_unchanged(
        before, after, case.rows, what="of real steps after changing the values at padding"
    )
    depends_on_visible_positions(draw, case, before)


@check("decoder.no-masks", examples=6)
def test_no_masks(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER, mapped=False, kinds=FREE, source_kinds=FREE, shortest=2)
    before = case.output()
    (batch, steps, _), length = case.x.shape, case.decoder_memory.shape[1]
    masked = case.but(
        mask=open_mask(subject, batch, steps, steps),
        source_mask=open_mask(subject, batch, steps, length),
    )
    rows_agree(case, before, masked.output(), what="output without masks")
    depends_on_visible_positions(draw, case, before)
