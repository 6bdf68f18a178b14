"""Checks of the chapter `decoder`: attention to the memory."""

import numpy as np

from attentest.harness.subject import Subject
from attentest.harness.tolerances import largest
from attentest.judging.check import check
from attentest.suite.test_decoder.cases import LAYER, TARGET, depends_on_any_memory
from attentest.testing.assertions import holds
from attentest.testing.dependence import (
    depends_on_memory,
    output_unchanged,
    poison,
    replace_positions,
)
from attentest.testing.draw import Draw
from attentest.testing.gradients import gradient_to
from attentest.testing.invariants import draw_order
from attentest.testing.layer_calls import draw_call, rows_agree


@check("decoder.memory-is-read", examples=4)
def test_memory_is_read(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER, kinds=TARGET, shortest=2)
    depends_on_memory(draw, case, draw.integer(0, case.decoder_memory.shape[1] - 1))


@check("decoder.memory-order", examples=2)
def test_memory_order(subject: Subject, draw: Draw) -> None:
    length = draw.at_least(3)
    for size in ((length, length), (draw.length(), length)):  # equal ones hide a mask of the target
        case = draw_call(subject, draw, LAYER, mapped=False, kinds=TARGET, lengths=size)
        order = draw_order(draw, length)
        mask = None if case.source_mask is None else case.source_mask[..., order]
        moved = case.but(memory=case.decoder_memory[:, order], source_mask=mask)
        before = case.output()
        rows_agree(case, moved.output(), before, what="output after reordering the memory")
        depends_on_any_memory(draw, case, before)


@check("decoder.source-mask-on-memory", examples=2)
def test_source_mask_on_memory(subject: Subject, draw: Draw) -> None:
    length = draw.length(2)
    size = draw.choose(((length, length), (draw.length(), length)))
    case = draw_call(
        subject,
        draw,
        LAYER,
        mapped=False,
        kinds=(*TARGET, "none"),
        source_kinds=("padding",),
        lengths=size,
    )
    hidden = ~case.source_keep.any(axis=1)
    other = replace_positions(draw, case.decoder_memory, hidden, poison(case.probe, draw))
    calls = [case]
    if size[0] == size[1] and "causal" in subject.limits.masks_of("mask"):
        # As a mask of the memory it would show every row of it to the query of that number.
        calls.append(case.but(mask=np.tril(np.ones((1, 1, length, length), dtype=bool))))
    for call in calls:
        before = call.output()
        after = call.but(memory=other).output()
        output_unchanged(before, after, call.rows, what="after changing hidden rows of the memory")
        depends_on_any_memory(draw, call, before)


@check("decoder.source-last-token-reaches-first-step", examples=2)
def test_source_last_token_reaches_first_step(subject: Subject, draw: Draw) -> None:
    size = (draw.length(), draw.length(2))
    case = draw_call(subject, draw, LAYER, kinds=TARGET, source_kinds=("padding",), lengths=size)
    assert case.source_mask is not None
    mask = case.source_mask.copy()
    mask[..., [0, -1]] = True  # a causal mask, put here by mistake, leaves the first step one key
    case = case.but(source_mask=mask)
    depends_on_memory(draw, case, size[1] - 1, steps=slice(0, 1))


@check("decoder.gradient-to-masked-memory", examples=2)
def test_gradient_to_masked_memory(subject: Subject, draw: Draw) -> None:
    size = (draw.length(), draw.length(2))
    kinds = ("causal", "none")
    case = draw_call(
        subject,
        draw,
        LAYER,
        mapped=False,
        kinds=kinds,
        source_kinds=("padding",),
        lengths=size,
    )
    gradient = case.probe.vjp(case.inputs, draw.floats(*case.x.shape))
    pulled = gradient_to(gradient, 1, "memory", case.decoder_memory.shape)
    hidden = ~case.source_keep.any(axis=1)
    leak = largest(pulled[hidden])
    holds(leak == 0.0, f"A hidden row of the memory has a gradient of {leak:.6g}.")
    holds(bool(pulled[~hidden].any()), "No gradient reaches the memory that is not hidden.")
