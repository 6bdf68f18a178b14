"""Checks of the chapter `decoder`: how the memory is read."""

from attentest.harness.subject import Subject
from attentest.harness.tolerances import largest
from attentest.judging.check import check
from attentest.suite.test_decoder.cases import LAYER, TARGET, heeds_any_memory
from attentest.testing.assertions import holds
from attentest.testing.dependence import changed, heeds_the_memory, poison, unmoved
from attentest.testing.draw import Draw
from attentest.testing.gradients import gradient_to
from attentest.testing.invariants import shuffled
from attentest.testing.layer_calls import agree, drawn


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
