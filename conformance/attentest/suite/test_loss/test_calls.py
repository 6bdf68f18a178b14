"""Checks of what surrounds the numbers: repeated calls, memory, inputs, and refusals."""

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent, BackendError
from attentest.harness.subject import Probe, Subject
from attentest.judging.check import check
from attentest.suite.test_loss.cases import (
    COMPONENT,
    check_loss,
    draw_case,
    draw_output,
    draw_sizes,
    draw_target,
)
from attentest.testing.assertions import equal, near
from attentest.testing.draw import Draw
from attentest.testing.refusal import (
    accepts,
    explains_refusal,
    refuses,
    require_index_errors,
)
from attentest_spec.setting import Array, Floats, Tokens


@check("loss.calls-independent", examples=6)
def test_calls_independent(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    probe, output, target = draw_case(subject, draw, sizes=sizes)
    first = check_loss(probe, output, target)
    for _ in range(2):
        batch, length = draw.batch(), draw.length()
        other = draw_target(draw, sizes, batch, length)
        check_loss(
            probe, draw_output(draw, sizes, batch, length), other, what="loss of a later call"
        )
    again, what = probe.output(output, target), "loss of the first batch once more"
    if subject.device == "cpu":
        equal(again, first, what=what)
    else:  # where the terms of a sum may be added in another order at every call
        near(subject, again, first, terms=target.size, what=what)


@check("loss.any-memory-layout")
def test_any_memory_layout(subject: Subject, draw: Draw) -> None:
    call = _in_pieces(subject, draw)
    try:
        check_loss(*call)
    except BackendError as refusal:
        raise Absent("what is in several pieces of memory is refused") from refusal


@check("loss.slices-accepted")
def test_slices_accepted(subject: Subject, draw: Draw) -> None:
    probe, output, target = _in_pieces(subject, draw)
    accepts(
        subject,
        "An output and a target that do not lie in one piece of memory",
        lambda: probe.output(output, target),
    )


def _in_pieces(subject: Subject, draw: Draw) -> tuple[Probe, Floats, Tokens]:
    """Build a loss, and draw an output and a target in several pieces of memory."""
    sizes, batch, length = draw_sizes(draw), draw.choose((2, 3)), draw.length(2)
    probe = subject.part(COMPONENT, sizes)
    output = draw_output(draw, sizes, batch, length)
    target = draw_target(draw, sizes, batch, length)
    wide = np.concatenate([np.full((batch, 1), sizes.target_pad), target], axis=1)[:, 1:]
    turned = np.ascontiguousarray(output.transpose(1, 0, 2)).transpose(1, 0, 2)
    return probe, turned, wide


@check("loss.inputs-untouched")
def test_inputs_untouched(subject: Subject, draw: Draw) -> None:
    probe, output, target = draw_case(subject, draw, length=draw.length(2))
    probe.output(output, target)  # the harness compares what was given with what is left of it
    if "gradient" in probe.part.capabilities:
        probe.vjp((output, target), np.array(1.0))


@check("loss.unequal-lengths-refused")
def test_unequal_lengths_refused(subject: Subject, draw: Draw) -> None:
    sizes, batch, length = draw_sizes(draw), draw.batch(), draw.length(2)
    probe = subject.part(COMPONENT, sizes)
    output = draw_output(draw, sizes, batch, length)
    target = draw.tokens(batch, length + 1, sizes.target_vocabulary, sizes.target_pad)
    given = target if draw.choose((True, False)) else target[:, : length - 1]
    refuses(
        subject,
        f"An output of {length} steps for a target of {given.shape[1]}",
        lambda: probe.output(output, given),
    )


@check("loss.out-of-range-refused")
def test_out_of_range_refused(subject: Subject, draw: Draw) -> None:
    probe, output, target, foreign = _foreign(subject, draw)
    doing = f"A target of {foreign} with a vocabulary of {probe.sizes.target_vocabulary}"
    refuses(subject, doing, lambda: probe.output(output, target))


@check("loss.out-of-range-named")
def test_out_of_range_named(subject: Subject, draw: Draw) -> None:
    probe, output, target, foreign = _foreign(subject, draw)
    doing = f"A target of {foreign} with a vocabulary of {probe.sizes.target_vocabulary}"
    explains_refusal(subject, doing, lambda: probe.output(output, target), naming=(foreign,))


def _foreign(subject: Subject, draw: Draw) -> tuple[Probe, Floats, Tokens, int]:
    """Build a loss, and draw an output and targets of which one is not in the vocabulary."""
    require_index_errors(subject)
    probe, output, target = draw_case(subject, draw)
    words = probe.sizes.target_vocabulary
    foreign = draw.choose((words, -100, words + 90, -1))
    target[draw.integer(0, len(target) - 1), draw.integer(0, target.shape[1] - 1)] = foreign
    return probe, output, target, foreign


@check("loss.smoothing-refused")
def test_smoothing_refused(subject: Subject, draw: Draw) -> None:
    if subject.limits.smoothing is not None:
        raise Absent(f"the label smoothing of {subject.name} is fixed")
    rate = draw.choose((1.5, -0.1, 10.0))
    sizes = draw_sizes(draw).but(smoothing=rate)

    def build() -> Array:
        target = draw_target(draw, sizes, 2, 3)
        output = cast(draw_output(draw, sizes, 2, 3), subject.precision)
        return subject.part(COMPONENT, sizes).output(output, target)

    refuses(subject, f"A smoothing of {rate}", build)
