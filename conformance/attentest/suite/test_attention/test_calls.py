"""Checks of the chapter `attention`: order, samples, strides and repeated calls."""

from dataclasses import replace

import numpy as np

from attentest.harness.errors import Absent, BackendError
from attentest.harness.subject import Subject
from attentest.harness.tolerances import largest
from attentest.judging.check import check
from attentest.suite.test_attention.cases import (
    OPEN_FIRST,
    AttentionCall,
    depends_on_values,
    draw_call,
    steepness,
)
from attentest.testing.assertions import equal, near
from attentest.testing.draw import Draw
from attentest.testing.invariants import draw_order
from attentest.testing.refusal import accepts
from attentest_spec.setting import Array


@check("attention.key-order")
def test_key_order(subject: Subject, draw: Draw) -> None:
    for kind in draw.mask_kinds(("per-sample", "none")):
        for keys in (draw.length(2), draw.long(5)):
            _unordered(
                subject,
                draw,
                draw_call(subject, draw, kinds=(kind,), lengths=(draw.length(), keys)),
            )


def _unordered(subject: Subject, draw: Draw, case: AttentionCall) -> None:
    order = draw_order(draw, case.key.shape[-2])
    mask = None if case.mask is None else case.mask[..., order]
    before = case.output()
    depends_on_values(case, before)
    after = case.output(case.query, case.key[..., order, :], case.value[..., order, :], mask)
    near(
        subject,
        after,
        before,
        terms=case.key.shape[-2],
        size=largest(case.value) * steepness(case),
        what="output after reordering the keys",
        precision=case.arithmetic,
    )


@check("attention.query-order")
def test_query_order(subject: Subject, draw: Draw) -> None:
    few = min(3, subject.limits.length or 3)
    lengths = draw.length(few), draw.length(few)
    case = draw_call(subject, draw, kinds=("none", "per-sample"), lengths=lengths, scale=1.0)
    order = draw_order(draw, case.query.shape[-2])
    mask = None if case.mask is None else case.mask[..., order, :]
    before = case.output()
    depends_on_values(case, before)
    after = case.output(case.query[..., order, :], case.key, case.value, mask)
    near(
        subject,
        after,
        before[..., order, :],
        terms=case.key.shape[-2],
        size=largest(case.value) * steepness(case),
        what="output after reordering the queries",
        precision=case.arithmetic,
    )


@check("attention.batch-independence", examples=2)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    for kind in draw.mask_kinds(("per-head", "per-sample", "padding")):
        longest = subject.limits.length or 5
        lengths = (draw.length(min(2, longest)), draw.length(min(5, longest)))
        heads = draw.several()
        case = draw_call(subject, draw, kinds=(kind,), samples=5, heads=heads, lengths=lengths)
        assert case.mask is not None
        _independent(subject, replace(case, mask=draw.differing(case.mask)))


def _independent(subject: Subject, case: AttentionCall) -> None:
    together = case.output()
    depends_on_values(case, together)
    mask = np.asarray(case.mask)
    samples, heads, *_ = together.shape
    every = slice(None)
    alone = [(f"sample {number}", (slice(number, number + 1), every)) for number in range(samples)]
    alone += [(f"head {number}", (every, slice(number, number + 1))) for number in range(heads)]
    for name, own in alone:
        seen = mask[own if mask.shape[1] > 1 else own[0]]
        near(
            subject,
            case.output(case.query[own], case.key[own], case.value[own], seen),
            together[own],
            terms=case.key.shape[-2] + case.query.shape[-1],
            size=largest(case.value) * steepness(case),
            what=f"output of {name} alone",
            precision=case.arithmetic,
        )


@check("attention.strided-inputs")
def test_strided_inputs(subject: Subject, draw: Draw) -> None:
    case, strided = _strided(subject, draw)
    plain = case.output()
    depends_on_values(case, plain)
    try:
        actual = case.output(*strided, case.mask)
    except BackendError as refusal:
        raise Absent("inputs that are not contiguous are refused") from refusal
    near(
        subject,
        actual,
        plain,
        terms=case.query.shape[-1] + case.key.shape[-2],
        size=largest(case.value) * steepness(case),
        what="output for strided inputs",
        precision=case.arithmetic,
    )


@check("attention.strided-inputs-accepted", examples=2)
def test_strided_inputs_accepted(subject: Subject, draw: Draw) -> None:
    case, strided = _strided(subject, draw)
    case.output()
    accepts(
        subject,
        "Inputs that are not contiguous in memory",
        lambda: case.output(*strided, case.mask),
    )


def _strided(subject: Subject, draw: Draw) -> tuple[AttentionCall, tuple[Array, ...]]:
    """Draw a call, and its query, key and value with their axes in another order in memory."""
    # An axis of length one leaves the others in order.
    samples, lengths = draw.choose((2, 3)), (draw.length(2), draw.length(2))
    case = draw_call(
        subject,
        draw,
        kinds=OPEN_FIRST,
        scale=1.0,
        lengths=lengths,
        samples=samples,
        heads=draw.several(),
    )
    return case, tuple(
        np.ascontiguousarray(array.transpose(3, 2, 0, 1)).transpose(2, 3, 1, 0)
        for array in (case.query, case.key, case.value)
    )


@check("attention.deterministic")
def test_deterministic(subject: Subject, draw: Draw) -> None:
    dropout, longest = 0.5 if subject.limits.dropout else 0.0, subject.limits.length or 3
    for kind in draw.mask_kinds(("none", "per-sample")):
        # Dropout that is never switched off spares so many weights by chance alone twice.
        lengths = (draw.length(min(2, longest)), draw.length(min(3, longest)))
        _repeated(
            subject, draw, draw_call(subject, draw, kinds=(kind,), lengths=lengths, dropout=dropout)
        )


def _repeated(subject: Subject, draw: Draw, case: AttentionCall) -> None:
    given = [one for one in case.probe(*case.inputs) if one is not None]
    kept = [one.copy() for one in given]
    first = kept[0]
    equal(case.output(), first, what="output of the second call")
    depends_on_values(case, first)
    # A call with other inputs of the same shapes stands between: nothing of it may be left.
    batch, heads, queries, keys = case.keep.shape
    kind = "padding" if "padding" in subject.limits.masks else "none"
    mask = draw.mask(kind, batch, heads, queries, keys)
    case.output(-case.query, case.key[..., ::-1, :], case.value, mask)
    for one, before in zip(given, kept, strict=True):
        equal(one, before, what="result of the first call, looked at after others,")
    equal(case.output(), first, what="output after a call with other inputs")
