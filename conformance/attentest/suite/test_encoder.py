"""Checks of the chapter `encoder`, layer and stack."""

import numpy as np

from attentest.cases import Call, half, precise, same_precision
from attentest.checks import check
from attentest.compare import equal
from attentest.draw import Draw
from attentest.gradients import agrees_with_differences, as_in_the_formula, every_parameter_reached
from attentest.laws import shuffled
from attentest.layers import (
    ALMOST_ALL,
    Case,
    agree,
    answers,
    changed,
    composed,
    depth_counts,
    drawn,
    drops_all_branches,
    everything,
    judged,
    one_norm,
    own_their_parameters,
    permuted,
    poison,
    reach,
    shows,
    steady,
    unmoved,
    without,
)
from attentest.outcome import Absent
from attentest.subject import Subject
from attentest_spec.setting import Array

LAYER, STACK = "encoder_layer", "encoder"
LAST = ("self_attention.output", "feed_forward.outer")
"""The last linear map of each sublayer."""

NORMS = tuple(
    f"{name}_norm.{leaf}"
    for name in ("self_attention", "feed_forward")
    for leaf in ("gain", "bias")
)


@check("encoder.layer-formula", examples=12)
def test_layer_formula(subject: Subject, draw: Draw) -> None:
    judged(drawn(subject, draw, LAYER, widths=(2, 4, 3), scale=scale(subject, draw)))


def scale(subject: Subject, draw: Draw) -> float:
    """Draw the size of x; a softmax of large scores is a matter of luck in few digits."""
    return draw.scale() if subject.precision == "float64" else 1.0


@check("encoder.formula", examples=5)
def test_formula(subject: Subject, draw: Draw) -> None:
    kinds = ("padding", "per-sample", "none", "per-head")
    for length in (draw.length(), draw.long(37)):
        size = scale(subject, draw)
        judged(drawn(subject, draw, STACK, kinds=kinds, scale=size, lengths=(length, 1)))


@check("encoder.norm-placement", examples=6)
def test_norm_placement(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER)
    shows(case, case.output(), "norm_placement", {})


@check("encoder.norm-sharing", examples=6)
def test_norm_sharing(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER)
    judged(case)
    if subject.choices.norm_sharing == "shared":
        one_norm(case)


@check("encoder.final-norm", examples=6)
def test_final_norm(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, STACK)
    width = case.probe.sizes.d_model
    shows(
        case,
        case.output(),
        "final_norm",
        {"norm.gain": np.ones(width), "norm.bias": np.zeros(width)},
    )


@check("encoder.order-of-sublayers", examples=6)
def test_order_of_sublayers(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER, kinds=("none", "padding"), scale=draw.choose((1.0, 0.1)))
    judged(case)


@check("encoder.skip-connections", examples=6)
def test_skip_connections(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER)
    for silent in ((LAST[0],), (LAST[1],), LAST):
        bare = case.probe.parameters
        case.probe.load(without(bare, silent))
        judged(case, what=f"output with zeros in {' and '.join(silent)}")
        case.probe.load(bare)


@check("encoder.separate-norms", examples=5)
def test_separate_norms(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER, kinds=("padding", "none"))
    as_in_the_formula(case.probe, *case.seen().inputs, names=NORMS, draw=draw)


@check("encoder.permutation-law", examples=6)
def test_permutation_law(subject: Subject, draw: Draw) -> None:
    kinds = ("none", "padding", "per-sample")
    case = drawn(subject, draw, LAYER, mapped=False, kinds=kinds, shortest=2)
    order = shuffled(draw, case.x.shape[1])
    before = case.output()
    moved = case.but(x=case.x[:, order], mask=permuted(case.mask, order))
    agree(moved, moved.output(), before[:, order], what="output after reordering the positions")
    answers(draw, case, before)


@check("encoder.padding-invariance", examples=6)
def test_padding_invariance(subject: Subject, draw: Draw) -> None:
    length = draw.length(2)
    size = (length, 1)
    case = drawn(subject, draw, STACK, mapped=False, kinds=("padding",), hiding=True, lengths=size)
    alone, places = _shortened(draw, case, draw.integer(1, length - 1))
    real = np.zeros(case.rows.shape, dtype=bool)
    np.put_along_axis(real, places, True, axis=1)
    filled = changed(draw, case.x, ~real, poison(case.probe, draw))
    padded = case.but(x=filled, mask=real[:, None, None, :])
    after = padded.output()
    among = np.take_along_axis(after, places[..., None], axis=1)
    agree(alone, alone.output(), among, what="output beside that among added padding")
    answers(draw, padded, after)


def _shortened(draw: Draw, case: Case, length: int) -> tuple[Case, Array]:
    """Return the call for `length` positions of each sample alone, and their places (B, length)."""
    samples, whole = case.rows.shape
    order = np.argsort(draw.rng.random((samples, whole)), axis=1)
    places = np.sort(order[:, :length], axis=1)
    x = np.take_along_axis(case.x, places[..., None], axis=1)
    return case.but(x=x, mask=everything(case.probe.subject, samples, length, length)), places


@check("encoder.padding-content", examples=6)
def test_padding_content(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER, mapped=False, kinds=("padding",), hiding=True)
    before = case.output()
    other = changed(draw, case.x, ~case.rows, poison(case.probe, draw))
    after = case.but(x=other).output()
    unmoved(before, after, case.rows, what="where nothing is hidden, after changing what is")
    answers(draw, case, before)


@check("encoder.mask-shapes", examples=14)
def test_mask_shapes(subject: Subject, draw: Draw) -> None:
    kinds, batch = ("padding", "per-sample", "per-head", "causal"), draw.choose((2, 3))
    case = drawn(subject, draw, LAYER, mapped=False, kinds=kinds, hiding=True, batch=batch)
    before = case.output()
    whole = broadcast(subject, case)
    agree(case, before, case.but(mask=whole).output(), what="output under the broadcast mask")
    if case.probe.parameters:
        judged(case, before)
    answers(draw, case, before)


def broadcast(subject: Subject, case: Case) -> Array:
    """Return the mask at the fullest shape that the backend supports for it."""
    assert case.mask is not None
    length = case.x.shape[1]
    heads = case.probe.sizes.heads if "per-head" in subject.limits.masks else 1
    if heads == 1 and "per-sample" not in subject.limits.masks:
        return case.mask
    return np.broadcast_to(case.mask, (len(case.x), heads, length, length)).copy()


@check("encoder.no-mask", examples=6)
def test_no_mask(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER, mapped=False, kinds=("none",), shortest=2)
    before = case.output()
    length = case.x.shape[1]
    masked = case.but(mask=everything(subject, len(case.x), length, length))
    agree(case, before, masked.output(), what="output without a mask")
    answers(draw, case, before)


@check("encoder.reach-is-the-mask", examples=5)
def test_reach_is_the_mask(subject: Subject, draw: Draw) -> None:
    if subject.precision not in ("float64", "float32"):
        raise Absent(f"small gradients vanish in {subject.precision}")
    kinds = ("per-sample", "padding", "causal")
    case = drawn(subject, draw, LAYER, kinds=kinds, hiding=True, lengths=(draw.length(2, 4), 1))
    length = case.x.shape[1]
    for row in range(length):
        judge = case.rows[:, row, None] & (np.arange(length) != row)
        equal(
            reach(draw, case, row) & judge,
            case.keep[:, row] & judge,
            what=f"map of where position {row} has a gradient to",
        )


@check("encoder.batch-independence", examples=6)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    kinds, batch = ("padding",), draw.choose((2, 3))
    case = drawn(subject, draw, STACK, mapped=False, kinds=kinds, hiding=True, batch=batch)
    before = case.output()
    sample = draw.integer(0, len(case.x) - 1)
    others = np.arange(len(case.x)) != sample
    where = np.broadcast_to(others[:, None], case.rows.shape)
    after = case.but(x=changed(draw, case.x, where)).output()
    unmoved(before, after, case.rows & ~where, what="of a sample after changing the others")
    mask = None if case.mask is None else case.mask[sample : sample + 1]
    alone = case.but(x=case.x[sample : sample + 1], mask=mask)
    agree(alone, alone.output(), before[sample : sample + 1], what="output of a sample alone")
    answers(draw, case, before)


@check("encoder.layers-own-parameters", examples=4)
def test_layers_own_parameters(subject: Subject, draw: Draw) -> None:
    own_their_parameters(draw, drawn(subject, draw, STACK, layers=draw.layers(2)))


@check("encoder.layers-in-sequence", examples=3)
def test_layers_in_sequence(subject: Subject, draw: Draw) -> None:
    for layers in (draw.layers(2), draw.deepest()):
        case = drawn(subject, draw, STACK, kinds=("padding", "none"), layers=layers, shortest=2)
        agree(case, case.output(), composed(case), what="output beside that of the layers in turn")


@check("encoder.stack-of-one-is-a-layer", examples=6)
def test_stack_of_one_is_a_layer(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, STACK, kinds=("padding", "none"), layers=1)
    agree(case, case.output(), composed(case), what="output beside that of the layer alone")


@check("encoder.depth-counts", examples=3)
def test_depth_counts(subject: Subject, draw: Draw) -> None:
    depth_counts(subject, draw, STACK)


@check("encoder.every-parameter-reached", examples=2)
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    if subject.precision != "float64":
        raise Absent("float64 alone tells a small gradient from none")
    kinds, layers = ("none", "padding"), draw.deepest()
    case = drawn(subject, draw, STACK, kinds=kinds, shortest=3, batch=2, layers=layers)
    every_parameter_reached(case.probe, *case.seen().inputs, draw=draw)
    agrees_with_differences(case.probe, *case.seen().inputs, draw=draw)


@check("encoder.eval-reaches-every-layer", examples=5)
def test_eval_reaches_every_layer(subject: Subject, draw: Draw) -> None:
    rate = draw.choose((0.5, 0.9, 0.1)) if subject.limits.dropout else 0.0
    case = drawn(subject, draw, STACK, mapped=False, dropout=rate, shortest=2)
    steady(case)
    answers(draw, case, case.output())


@check("encoder.dropout-on-sublayers", examples=5)
def test_dropout_on_sublayers(subject: Subject, draw: Draw) -> None:
    if not subject.limits.dropout:
        raise Absent(f"{subject.name} has no dropout")
    case = drawn(subject, draw, LAYER, kinds=("none",), dropout=ALMOST_ALL, shortest=3, batch=2)
    drops_all_branches(case, LAST)


@check("encoder.gradient", examples=5)
def test_gradient(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER, mapped=False, kinds=("padding", "none", "causal"))
    agrees_with_differences(case.probe, *case.seen().inputs, draw=draw)


@check("encoder.float32", examples=6)
def test_float32(subject: Subject, draw: Draw) -> None:
    _precise(subject, draw, STACK, "float32")


@check("encoder.half-precision", examples=8)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    _precise(subject, draw, LAYER, half(subject, draw))


def _precise(subject: Subject, draw: Draw, component: str, precision: str) -> None:
    subject.require_precision(precision)
    kinds = ("padding", "none")
    case = drawn(subject, draw, component, kinds=kinds, precision=precision)

    def make(asked: str) -> Call:
        return case.probe, case.inputs

    precise(make, precision, rows=case.rows)


@check("encoder.shapes", examples=6)
def test_shapes(subject: Subject, draw: Draw) -> None:
    one = draw.choose(("batch", "length", "both", "neither"))
    case = drawn(
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
    answers(draw, case, before)


@check("encoder.input-untouched", examples=5)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, STACK, mapped=False, kinds=("padding", "none"), shortest=2)
    before = case.output().copy()
    equal(case.output(), before, what="output of the second call")
    answers(draw, case, before)
