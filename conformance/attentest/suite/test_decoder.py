"""Checks of the chapter `decoder`, layer and stack."""

import numpy as np

from attentest.cases import HALVES, Call, half, precise, same_precision
from attentest.checks import check
from attentest.compare import as_floats, equal, holds, largest
from attentest.draw import Draw
from attentest.gradients import (
    agrees_with_differences,
    as_in_the_formula,
    every_parameter_reached,
    gradient_to,
)
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
    heeds_the_memory,
    judged,
    own_their_parameters,
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

LAYER, STACK = "decoder_layer", "decoder"
SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")
LAST = ("self_attention.output", "cross_attention.output", "feed_forward.outer")
"""The last linear map of each sublayer."""

NORMS = tuple(f"{name}_norm.{leaf}" for name in SUBLAYERS for leaf in ("gain", "bias"))
TARGET = ("target", "causal")
PADDED = ("target",)
FREE = ("none",)


@check("decoder.layer-formula", examples=12)
def test_layer_formula(subject: Subject, draw: Draw) -> None:
    kinds = ("per-sample", "padding", "none", "per-head")
    x = draw.scale() if subject.precision == "float64" else 1.0
    judged(drawn(subject, draw, LAYER, source_kinds=kinds, widths=(2, 4, 3), scale=x))


@check("decoder.formula", examples=5)
def test_formula(subject: Subject, draw: Draw) -> None:
    long = draw.long(37)
    for size in (lengths(draw), (long, long)):
        judged(drawn(subject, draw, STACK, kinds=("target", "causal", "none"), lengths=size))


def lengths(draw: Draw) -> tuple[int, int]:
    """Draw the lengths of target and memory, unlike more often than not."""
    return draw.choose((draw.lengths(), (draw.length(2), draw.length(2))))


@check("decoder.order-of-sublayers", examples=6)
def test_order_of_sublayers(subject: Subject, draw: Draw) -> None:
    judged(drawn(subject, draw, LAYER, kinds=TARGET, scale=draw.choose((1.0, 0.1))))


@check("decoder.skip-connections", examples=6)
def test_skip_connections(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER, kinds=TARGET)
    kept = case.probe.parameters
    for silent in ((LAST[0],), (LAST[1],), (LAST[2],), LAST):
        case.probe.load(without(kept, silent))
        judged(case, what=f"output with zeros in {' and '.join(silent)}")
    case.probe.load(kept)


@check("decoder.separate-norms", examples=5)
def test_separate_norms(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER, kinds=("causal", "none"), shortest=2)
    as_in_the_formula(case.probe, *case.inputs, names=NORMS, draw=draw)


@check("decoder.causality", examples=6)
def test_causality(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, STACK, mapped=False, kinds=TARGET, shortest=2)
    steps = np.arange(case.x.shape[1])
    step = draw.integer(1, len(steps) - 1)
    where = np.broadcast_to(steps == step, case.rows.shape)
    before = case.output()
    after = case.but(x=changed(draw, case.x, where, scale=poison(case.probe, draw))).output()
    unmoved(before, after, case.rows & (steps < step), what=f"before step {step}, which is changed")
    answers(draw, case, before)


@check("decoder.causality-by-gradient", examples=5)
def test_causality_by_gradient(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, STACK, mapped=False, kinds=("causal",), shortest=2)
    steps = np.arange(case.x.shape[1])
    step = draw.integer(0, len(steps) - 2)
    reached = reach(draw, case, step)
    holds(
        not reached[:, steps > step].any(),
        f"The output of step {step} has a gradient to {int(reached[:, steps > step].sum())} "
        "later steps.",
    )
    if case.probe.sizes.d_model > 2:
        holds(reached[:, step].all(), f"The output of step {step} has no gradient to itself.")


@check("decoder.memory-is-read", examples=8)
def test_memory_is_read(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER, kinds=TARGET, shortest=2)
    heeds_the_memory(draw, case, draw.integer(0, case.read.shape[1] - 1))


@check("decoder.memory-order", examples=6)
def test_memory_order(subject: Subject, draw: Draw) -> None:
    size = (draw.length(), draw.length(2))
    case = drawn(subject, draw, LAYER, mapped=False, kinds=TARGET, lengths=size)
    order = shuffled(draw, size[1])
    mask = None if case.source_mask is None else case.source_mask[..., order]
    moved = case.but(memory=case.read[:, order], source_mask=mask)
    before = case.output()
    agree(case, moved.output(), before, what="output after reordering the memory")
    heeds_any_memory(draw, case, before)


def heeds_any_memory(draw: Draw, case: Case, before: Array) -> None:
    """Demand a real answer: another memory moves the output."""
    other = case.but(memory=case.read + 1.0 + draw.floats(*case.read.shape))
    moved = (as_floats(other.output()) != as_floats(before))[case.rows]
    told = case.probe.precision not in HALVES  # a narrow norm may round all to the same
    holds(moved.any() or not told, "Another memory leaves the output as it is.")


@check("decoder.source-mask-on-memory", examples=6)
def test_source_mask_on_memory(subject: Subject, draw: Draw) -> None:
    length = draw.length(2)
    size = draw.choose(((length, length), (draw.length(), length)))
    case = drawn(
        subject,
        draw,
        LAYER,
        mapped=False,
        kinds=(*TARGET, "none"),
        source_kinds=("padding",),
        lengths=size,
    )
    hidden = ~case.source_keep.any(axis=1)
    before = case.output()
    other = changed(draw, case.read, hidden, poison(case.probe, draw))
    after = case.but(memory=other).output()
    unmoved(before, after, case.rows, what="after changing hidden rows of the memory")
    heeds_any_memory(draw, case, before)


@check("decoder.source-last-token-reaches-first-step", examples=6)
def test_source_last_token_reaches_first_step(subject: Subject, draw: Draw) -> None:
    size = draw.lengths()
    case = drawn(subject, draw, LAYER, kinds=TARGET, source_kinds=("padding",), lengths=size)
    assert case.source_mask is not None
    mask = case.source_mask.copy()
    mask[..., -1] = True
    case = case.but(source_mask=mask)
    heeds_the_memory(draw, case, size[1] - 1, steps=slice(0, 1))


@check("decoder.shapes", examples=6)
def test_shapes(subject: Subject, draw: Draw) -> None:
    size = draw.choose((draw.lengths(), (1, 1), (1, draw.length(2)), (draw.length(2), 1)))
    batch = draw.choose((2, 1, 3))
    kinds = ("causal", "none")
    case = drawn(subject, draw, LAYER, mapped=False, kinds=kinds, batch=batch, lengths=size)
    before = case.output()
    same_precision(case.probe, before)
    heeds_any_memory(draw, case, before)


@check("decoder.target-padding", examples=6)
def test_target_padding(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, STACK, mapped=False, kinds=PADDED, shortest=2, hiding=True)
    before = case.output()
    other = changed(draw, case.x, ~case.rows, poison(case.probe, draw))
    after = case.but(x=other).output()
    unmoved(before, after, case.rows, what="of real steps after changing what stands at pads")
    answers(draw, case, before)


@check("decoder.no-masks", examples=6)
def test_no_masks(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER, mapped=False, kinds=FREE, source_kinds=FREE, shortest=2)
    before = case.output()
    (batch, steps, _), length = case.x.shape, case.read.shape[1]
    masked = case.but(
        mask=everything(subject, batch, steps, steps),
        source_mask=everything(subject, batch, steps, length),
    )
    agree(case, before, masked.output(), what="output without masks")
    answers(draw, case, before)


@check("decoder.batch-independence", examples=6)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    case = drawn(
        subject,
        draw,
        STACK,
        mapped=False,
        kinds=PADDED,
        source_kinds=("padding",),
        batch=draw.choose((2, 3)),
        shortest=2,
    )
    before = case.output()
    own = slice(sample := draw.integer(0, len(case.x) - 1), sample + 1)
    others = np.arange(len(case.x)) != sample
    for name, given in (("x", case.x), ("memory", case.read)):
        where = np.broadcast_to(others[:, None], given.shape[:2])
        after = case.but(**{name: changed(draw, given, where)}).output()
        rows = case.rows & ~others[:, None]
        unmoved(before, after, rows, what=f"of a sample after changing {name} of the others")
    alone = alone_at(case, own)
    agree(alone, alone.output(), before[own], what="output of a sample alone")
    answers(draw, case, before)


def alone_at(case: Case, own: slice) -> Case:
    """Return the call of one sample alone."""
    assert case.mask is not None
    assert case.source_mask is not None
    return case.but(
        x=case.x[own],
        memory=case.read[own],
        mask=case.mask[own],
        source_mask=case.source_mask[own],
    )


@check("decoder.layers-own-parameters", examples=4)
def test_layers_own_parameters(subject: Subject, draw: Draw) -> None:
    own_their_parameters(draw, drawn(subject, draw, STACK, kinds=TARGET, layers=draw.layers(2)))


@check("decoder.layers-in-sequence", examples=3)
def test_layers_in_sequence(subject: Subject, draw: Draw) -> None:
    for layers in (draw.layers(2), draw.deepest()):
        case = drawn(subject, draw, STACK, kinds=TARGET, layers=layers, shortest=2)
        agree(case, case.output(), composed(case), what="output beside that of the layers in turn")


@check("decoder.final-norm", examples=6)
def test_final_norm(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, STACK, kinds=TARGET)
    width = case.probe.sizes.d_model
    norm = {"norm.gain": np.ones(width), "norm.bias": np.zeros(width)}
    shows(case, case.output(), "final_norm", norm)


@check("decoder.depth-counts", examples=3)
def test_depth_counts(subject: Subject, draw: Draw) -> None:
    depth_counts(subject, draw, STACK)


@check("decoder.every-parameter-reached", examples=2)
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    if subject.precision != "float64":
        raise Absent("float64 alone tells a small gradient from none")
    kinds = ("causal", "none")
    case = drawn(
        subject,
        draw,
        STACK,
        kinds=kinds,
        source_kinds=FREE,
        shortest=3,
        batch=2,
        layers=draw.deepest(),
    )
    every_parameter_reached(case.probe, *case.inputs, draw=draw)
    agrees_with_differences(case.probe, *case.inputs, draw=draw)


@check("decoder.eval-reaches-every-layer", examples=5)
def test_eval_reaches_every_layer(subject: Subject, draw: Draw) -> None:
    rate = draw.choose((0.5, 0.9, 0.1)) if subject.limits.dropout else 0.0
    case = drawn(subject, draw, STACK, mapped=False, kinds=TARGET, dropout=rate, shortest=2)
    steady(case)
    answers(draw, case, case.output())


@check("decoder.dropout-on-sublayers", examples=5)
def test_dropout_on_sublayers(subject: Subject, draw: Draw) -> None:
    if not subject.limits.dropout:
        raise Absent(f"{subject.name} has no dropout")
    kinds = ("causal", "none")
    case = drawn(subject, draw, LAYER, kinds=kinds, dropout=ALMOST_ALL, shortest=3, batch=2)
    drops_all_branches(case, LAST)


@check("decoder.gradient", examples=5)
def test_gradient(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, LAYER, mapped=False, kinds=("causal", "none"))
    agrees_with_differences(case.probe, *case.inputs, draw=draw)


@check("decoder.gradient-to-masked-memory", examples=5)
def test_gradient_to_masked_memory(subject: Subject, draw: Draw) -> None:
    size = (draw.length(), draw.length(2))
    kinds = ("causal", "none")
    case = drawn(
        subject,
        draw,
        LAYER,
        mapped=False,
        kinds=kinds,
        source_kinds=("padding",),
        lengths=size,
    )
    gradient = case.probe.vjp(case.inputs, draw.floats(*case.x.shape))
    pulled = gradient_to(gradient, 1, "memory", case.read.shape)
    hidden = ~case.source_keep.any(axis=1)
    leak = largest(pulled[hidden])
    holds(leak == 0.0, f"A hidden row of the memory has a gradient of {leak:.6g}.")
    holds(bool(pulled[~hidden].any()), "No gradient reaches the memory that is not hidden.")


@check("decoder.float32", examples=6)
def test_float32(subject: Subject, draw: Draw) -> None:
    _precise(subject, draw, STACK, "float32")


@check("decoder.half-precision", examples=8)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    _precise(subject, draw, LAYER, half(subject, draw))


def _precise(subject: Subject, draw: Draw, component: str, precision: str) -> None:
    subject.require_precision(precision)
    case = drawn(subject, draw, component, kinds=TARGET, precision=precision)

    def make(asked: str) -> Call:
        return case.probe, case.inputs

    precise(make, precision, rows=case.rows)


@check("decoder.input-untouched", examples=5)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, STACK, mapped=False, kinds=TARGET, source_kinds=("padding",))
    before = case.output().copy()
    equal(case.output(), before, what="output of the second call")
    heeds_any_memory(draw, case, before)
