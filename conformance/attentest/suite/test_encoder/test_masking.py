"""Checks of the chapter `encoder`: masks and padding."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_encoder.cases import LAYER, STACK
from attentest.testing.assertions import equal
from attentest.testing.dependence import (
    depends_on_visible_positions,
    gradient_reach,
    output_unchanged,
    poison,
    replace_positions,
)
from attentest.testing.draw import Draw
from attentest.testing.layer_calls import (
    LayerCall,
    draw_call,
    matches_reference,
    open_mask,
    rows_agree,
)
from attentest_spec.order import ordered
from attentest_spec.setting import Array


@check("encoder.padding-invariance", examples=2)
def test_padding_invariance(subject: Subject, draw: Draw) -> None:
    length = draw.length(min(3, subject.limits.length or 3))
    size = (length, 1)
    case = draw_call(
        subject, draw, STACK, mapped=False, kinds=("padding",), hiding=True, lengths=size
    )
    # A single position attends to itself alone, whatever its scores are.
    alone, places = _shortened(draw, case, draw.integer(min(2, length - 1), length - 1))
    real = np.zeros(case.rows.shape, dtype=bool)
    np.put_along_axis(real, places, True, axis=1)
    filled = replace_positions(draw, case.x, ~real, poison(case.probe, draw))
    padded = case.but(x=filled, mask=real[:, None, None, :])
    after = padded.output()
    among = np.take_along_axis(after, places[..., None], axis=1)
    rows_agree(alone, alone.output(), among, what="output beside that among added padding")
    depends_on_visible_positions(draw, padded, after)


def _shortened(draw: Draw, case: LayerCall, length: int) -> tuple[LayerCall, Array]:
    """Return the call for `length` positions of each sample alone, and their places (B, length)."""
    samples, whole = case.rows.shape
    order = np.argsort(draw.rng.random((samples, whole)), axis=1)
    if ordered(case.probe.subject.choices):  # what is added in between moves the positions after it
        order = np.broadcast_to(np.arange(whole), order.shape)
    places = np.sort(order[:, :length], axis=1)
    x = np.take_along_axis(case.x, places[..., None], axis=1)
    return case.but(x=x, mask=open_mask(case.probe.subject, samples, length, length)), places


@check("encoder.padding-content", examples=2)
def test_padding_content(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER, mapped=False, kinds=("padding",), hiding=True)
    before = case.output()
    other = replace_positions(draw, case.x, ~case.rows, poison(case.probe, draw))
    after = case.but(x=other).output()
    output_unchanged(
        before, after, case.rows, what="where nothing is hidden, after changing what is"
    )
    depends_on_visible_positions(draw, case, before)


@check("encoder.mask-shapes", examples=2)
def test_mask_shapes(subject: Subject, draw: Draw) -> None:
    for kind in draw.mask_kinds(("padding", "per-sample", "per-head", "causal")):
        batch, heads = draw.choose((2, 3)), draw.several()
        case = draw_call(
            subject,
            draw,
            LAYER,
            mapped=False,
            hiding=True,
            kinds=(kind,),
            batch=batch,
            heads=heads,
        )
        _shaped(subject, draw, case)


def _shaped(subject: Subject, draw: Draw, case: LayerCall) -> None:
    before = case.output()
    whole = broadcast(subject, case)
    if whole is case.mask and not case.probe.parameters:
        raise Absent(f"{subject.name} takes one shape of mask alone")
    rows_agree(case, before, case.but(mask=whole).output(), what="output under the broadcast mask")
    if case.probe.parameters:
        matches_reference(case, before)
    depends_on_visible_positions(draw, case, before)


def broadcast(subject: Subject, case: LayerCall) -> Array:
    """Return the mask at the fullest shape that the backend supports for it."""
    assert case.mask is not None
    length = case.x.shape[1]
    heads = case.probe.sizes.heads if "per-head" in subject.limits.masks else 1
    if heads == 1 and "per-sample" not in subject.limits.masks:
        return case.mask
    return np.broadcast_to(case.mask, (len(case.x), heads, length, length)).copy()


@check("encoder.no-mask", examples=2)
def test_no_mask(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER, mapped=False, kinds=("none",), shortest=2)
    before = case.output()
    length = case.x.shape[1]
    masked = case.but(mask=open_mask(subject, len(case.x), length, length))
    rows_agree(case, before, masked.output(), what="output without a mask")
    depends_on_visible_positions(draw, case, before)


@check("encoder.reach-is-the-mask", examples=2)
def test_reach_is_the_mask(subject: Subject, draw: Draw) -> None:
    if subject.precision not in ("float64", "float32"):
        raise Absent(f"small gradients vanish in {subject.precision}")
    for kind in draw.mask_kinds(("per-sample", "padding", "causal")):
        size = (draw.length(min(3, subject.limits.length or 3), 5), 1)
        _reaches(draw, draw_call(subject, draw, LAYER, kinds=(kind,), hiding=True, lengths=size))


def _reaches(draw: Draw, case: LayerCall) -> None:
    length = case.x.shape[1]
    for row in range(length):
        judge = case.rows[:, row, None] & (np.arange(length) != row)
        equal(
            gradient_reach(draw, case, row) & judge,
            case.keep[:, row] & judge,
            what=f"map of where position {row} has a gradient to",
        )
