"""Checks of the chapter `decoder`: which steps of the target a step depends on."""

from contextlib import suppress

import numpy as np

from attentest.harness.errors import Absent
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
from attentest.testing.layer_calls import LayerCall, draw_call, open_mask, rows_agree
from attentest_spec.setting import Array


@check("decoder.causality", examples=2)
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


@check("decoder.causality-by-gradient", examples=2)
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


@check("decoder.target-padding", examples=2)
def test_target_padding(subject: Subject, draw: Draw) -> None:
    shortest = min(3, subject.limits.length or 3)
    case = draw_call(
        subject, draw, STACK, mapped=False, kinds=PADDED, shortest=shortest, hiding=True
    )
    # The last step of the first sample is real, and one before it is padding.
    mask = np.array(case.mask)
    mask[0, ..., 1], mask[0, ..., -1, -1] = False, True
    case = case.but(mask=mask)
    before = case.output()
    other = replace_positions(draw, case.x, ~case.rows, poison(case.probe, draw))
    after = case.but(x=other).output()
    output_unchanged(
        before, after, case.rows, what="of real steps after changing the values at padding"
    )
    depends_on_visible_positions(draw, case, before)


@check("decoder.no-masks", examples=2)
def test_no_masks(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER, mapped=False, kinds=FREE, source_kinds=FREE, shortest=2)
    before = case.output()
    rows_agree(case, before, _opened(case).output(), what="output without masks")
    depends_on_visible_positions(draw, case, before)


def _opened(case: LayerCall) -> LayerCall:
    """Return the call with masks that hide nothing, of those masks that can be written so."""
    (batch, steps, _), length = case.x.shape, case.decoder_memory.shape[1]
    found: dict[str, Array | None] = {}
    for role, keys in (("mask", steps), ("source_mask", length)):
        with suppress(Absent):
            found[role] = open_mask(case.probe.subject, batch, steps, keys, role)
    if not found:
        raise Absent(f"{case.probe.subject.name} takes no mask that hides nothing")
    return case.but(**found)
