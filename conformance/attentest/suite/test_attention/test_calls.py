"""Checks of the chapter `attention`: order, samples, strides and repeated calls."""

import numpy as np

from attentest.harness.errors import Absent, BackendError
from attentest.harness.subject import Subject
from attentest.harness.tolerances import largest
from attentest.judging.check import check
from attentest.suite.test_attention.cases import (
    AttentionCall,
    depends_on_values,
    draw_call,
    steepness,
)
from attentest.testing.assertions import equal, near
from attentest.testing.draw import Draw
from attentest.testing.refusal import accepts
from attentest_spec.setting import Array


@check("attention.key-order", examples=4)
def test_key_order(subject: Subject, draw: Draw) -> None:
    for kind in draw.mask_kinds(("per-sample", "none")):
        for keys in (draw.length(2), draw.long(5)):
            _unordered(
                subject,
                draw,
                draw_call(subject, draw, kinds=(kind,), lengths=(draw.length(), keys)),
            )


def _unordered(subject: Subject, draw: Draw, case: AttentionCall) -> None:
    order = _shuffled(draw, case.key.shape[-2])
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


@check("attention.query-order", examples=10)
def test_query_order(subject: Subject, draw: Draw) -> None:
    case = draw_call(
        subject, draw, kinds=("per-sample", "none"), lengths=(draw.length(2), draw.length())
    )
    order = _shuffled(draw, case.query.shape[-2])
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


def _shuffled(draw: Draw, length: int) -> Array:
    """Return an order of `length` items that is not the one they came in."""
    order = draw.rng.permutation(length)
    return np.roll(order, 1) if np.array_equal(order, np.arange(length)) else order


@check("attention.batch-independence", examples=3)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    for kind in draw.mask_kinds(("per-head", "per-sample", "padding")):
        lengths = (draw.length(), draw.length(2))
        heads = draw.several()
        _independent(
            subject,
            draw,
            draw_call(subject, draw, kinds=(kind,), samples=5, heads=heads, lengths=lengths),
        )


def _independent(subject: Subject, draw: Draw, case: AttentionCall) -> None:
    head = draw.integer(0, case.query.shape[1] - 1)
    together = case.output()
    depends_on_values(case, together)
    for sample in range(len(together)):
        own = np.s_[sample : sample + 1, head : head + 1]
        near(
            subject,
            case.output(case.query[own], case.key[own], case.value[own], np.array(case.keep[own])),
            together[own],
            terms=case.key.shape[-2] + case.query.shape[-1],
            size=largest(case.value) * steepness(case),
            what=f"output of sample {sample} and one head alone",
            precision=case.arithmetic,
        )


@check("attention.strided-inputs", examples=8)
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
    case = draw_call(subject, draw, scale=1.0)
    return case, tuple(
        np.ascontiguousarray(array.transpose(3, 2, 0, 1)).transpose(2, 3, 1, 0)
        for array in (case.query, case.key, case.value)
    )


@check("attention.deterministic", examples=4)
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
