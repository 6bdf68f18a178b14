"""Checks of the chapter `multi_head_attention`: masks."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_multi_head_attention.cases import (
    COMPONENT,
    MultiHeadCall,
    build_loaded,
    depends_on_values,
    draw_call,
    draw_sizes,
    matches_reference,
    samples_alone_agree,
    with_differing_masks,
)
from attentest.testing.assertions import equal, finite, holds
from attentest.testing.draw import Draw
from attentest.testing.invariants import agree_up_to_rounding, build_with_parameters
from attentest_spec.setting import Array

ONE_HEAD_AXIS = ("per-sample", "padding", "causal")


@check("multi_head_attention.masked-keys-ignored")
def test_masked_keys_ignored(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    for kind in draw.mask_kinds(("padding", "per-sample", "causal")):
        case = draw_call(draw, probe, hiding=True, kinds=(kind,))
        before = case.output()
        finite(before)
        depends_on_values(draw, case, before)
        _ignores_hidden(draw, case, before)


def _ignores_hidden(draw: Draw, case: MultiHeadCall, before: Array) -> None:
    """Demand that other keys and values change nothing for the queries they are hidden from."""
    seen: Array = np.asarray(case.keep.any(axis=1))
    for number in range(case.key.shape[1]):
        hidden = ~seen[..., number]
        if not case.probe.subject.limits.cross:
            hidden[:, number] = False  # the position is a query of its own, too
        if not hidden.any():
            continue
        key, value = case.key.copy(), case.value.copy()
        key[:, number] = draw.floats(*key[:, number].shape, scale=100.0)
        value[:, number] = draw.floats(*value[:, number].shape, scale=100.0)
        after = case.but(key=key, value=value).output()
        equal(
            after[hidden],
            before[hidden],
            what=f"output of the queries that key {number} is hidden from, after changing it",
        )


@check("multi_head_attention.causality")
def test_causality(subject: Subject, draw: Draw) -> None:
    kinds = [one for one in ("none", "padding") if one in subject.limits.masks]
    if not kinds:
        raise Absent(f"{subject.name} takes no mask that keeps every key")
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    length = draw.length(3)
    case = draw_call(draw, probe, kinds=kinds[:1], lengths=(length, length))
    if case.mask is not None:
        case = case.but(mask=np.ones_like(case.mask))
    before, place = case.output(), draw.integer(1, length - 1)
    value = case.value.copy()
    value[:, place] += 100.0
    after = case.but(value=value).output()
    moved = (after != before).any(axis=(0, 2))
    shown = "by-mask" if moved[:place].any() else "built-in"
    declared = subject.choices.attention_causality
    seen = case.keep[0, 0, :, place]
    seen = moved[place:] | ~seen[place:]
    holds(bool(seen.all()), f"Key {place} does not change the queries from {place} on.")
    holds(
        shown == declared,
        f"attention_causality is declared as {declared}; key {place}, without a mask that hides "
        f"it, {'changes' if shown == 'by-mask' else 'does not change'} earlier queries.",
        actual=after,
    )


@check("multi_head_attention.one-mask-for-all-heads")
def test_one_mask_for_all_heads(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw, low=2))
    case = draw_call(draw, probe, hiding=True, kinds=ONE_HEAD_AXIS)
    before = case.output()
    depends_on_values(draw, case, before)
    _ignores_hidden(draw, case, before)
    if "per-head" in subject.limits.masks:
        agree_up_to_rounding(
            probe,
            *case.inputs,
            actual=case.but(mask=np.array(case.keep)).output(),
            expected=before,
            what="output under the mask written out for each head",
        )


@check("multi_head_attention.mask-per-sample")
def test_mask_per_sample(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw, low=2))
    lengths = draw.length(2), draw.length(min(3, subject.limits.length or 3))
    for kind in draw.mask_kinds(("padding", "per-sample")):
        batch = draw.choose((2, 3))
        case = draw_call(draw, probe, hiding=True, kinds=(kind,), lengths=lengths, batch=batch)
        case = with_differing_masks(draw, case)
        together = case.output()
        depends_on_values(draw, case, together)
        _ignores_hidden(draw, case, together)
        samples_alone_agree(case, together)


@check("multi_head_attention.mask-per-head")
def test_mask_per_head(subject: Subject, draw: Draw) -> None:
    probe = build_loaded(subject, draw, draw_sizes(draw, low=2))
    case = draw_call(draw, probe, hiding=True, kinds=("per-head",))
    matches_reference(with_differing_masks(draw, case))
