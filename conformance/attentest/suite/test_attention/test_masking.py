"""Checks of the chapter `attention`: masks."""

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, distance, fits, largest
from attentest.judging.check import check
from attentest.suite.test_attention.cases import (
    AttentionCall,
    draw_call,
    require_large_scores,
    steepness,
)
from attentest.testing.assertions import equal, finite, holds, matches, near
from attentest.testing.draw import Draw
from attentest_spec.attention import scores
from attentest_spec.setting import Array, Floats


def poisoned(draw: Draw, case: AttentionCall, size: float) -> tuple[Floats, Floats, Array]:
    """Return key and value with other numbers where no query of a sample and head may look."""
    seen: Array = np.asarray(case.keep.any(axis=-2))[..., None]
    key = np.where(seen, case.key, draw.floats(*case.key.shape, scale=size))
    value = np.where(seen, case.value, draw.floats(*case.value.shape, scale=size))
    return key, value, ~seen[..., 0]


@check("attention.masked-keys-ignored")
def test_masked_keys_ignored(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, hiding=True, kinds=("padding",), scale=1.0)
    key, value, hidden = poisoned(draw, case, 100.0)
    before = case.output()
    finite(before)
    equal(
        case.output(case.query, key, value, case.mask),
        before,
        what="output after changing what is masked",
    )
    shown = np.where(hidden[..., None], case.value, case.value + 1.0)
    after = case.output(case.query, case.key, shown, case.mask)
    near(
        subject,
        after,
        as_floats(before) + 1.0,
        terms=case.key.shape[-2],
        what="output after adding 1 to every value that is not masked",
        precision=case.arithmetic,
    )


@check("attention.masking-exact")
def test_masking_exact(subject: Subject, draw: Draw) -> None:
    require_large_scores(subject)
    fill = subject.choices.mask_fill
    reach = 1e6 if fill == "exact" else 100.0 * abs(float(fill))
    case = draw_call(subject, draw, hiding=True, scale=1.0)
    # Every key that may be attended fits far worse than the ones that are masked.
    sign = np.where(case.keep.any(axis=-2), -1.0, 1.0)[..., None]
    query = np.abs(case.query) + 1.0
    key = sign * (np.abs(case.key) + 1.0)
    raw = np.abs(scores(query, key)).max()
    inputs = (cast(query * (reach / raw), case.probe.precision), key, case.value, case.mask)
    actual = case.output(*inputs)
    matches(case.probe, *inputs, actual=actual)
    if fill != "exact":
        _shows_the_fill(case, inputs, actual)


def _shows_the_fill(case: AttentionCall, inputs: tuple[Array | None, ...], actual: Array) -> None:
    """Demand that the numbers tell the declared fill from an exact mask, where they can."""
    exact = case.probe.subject.choices.but(mask_fill="exact")
    difference = distance(
        case.probe.expected(*inputs).output, case.probe.expected(*inputs, choices=exact).output
    )
    if difference > 1e-3:
        holds(
            not fits(case.probe, *inputs, actual=actual, choices=exact),
            "A finite fill is declared, and the numbers show an exact mask.",
        )


@check("attention.fully-masked-row")
def test_fully_masked_row(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, hiding=True, kinds=("per-sample", "per-head"))
    queries = case.keep.shape[-2]
    empty = draw.integer(0, queries - 1)
    mask = np.array(case.mask)
    mask[..., empty, :] = False
    inputs = (case.query, case.key, case.value, mask)
    actual = case.output(*inputs)
    rows = np.ones(actual.shape[:-1], dtype=bool)
    if subject.choices.fully_masked_row == "unspecified":
        rows[..., empty] = False
    matches(case.probe, *inputs, actual=actual, rows=rows)


@check("attention.mask-shapes")
def test_mask_shapes(subject: Subject, draw: Draw) -> None:
    for kind in draw.mask_kinds(("padding", "causal", "per-sample", "per-head")):
        heads = draw.several()
        _shaped(
            subject, draw_call(subject, draw, hiding=True, scale=1.0, kinds=(kind,), heads=heads)
        )


def _shaped(subject: Subject, case: AttentionCall) -> None:
    output = case.output()
    if "per-head" in subject.limits.masks:
        whole = np.array(case.keep)
        near(
            subject,
            output,
            case.output(case.query, case.key, case.value, whole),
            terms=case.key.shape[-2],
            size=largest(case.value) * steepness(case),
            what="output under the broadcast mask",
            precision=case.arithmetic,
        )
    matches(case.probe, *case.inputs, actual=output)
