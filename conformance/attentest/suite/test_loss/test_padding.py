"""Checks that padding counts in no term of the loss."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.judging.check import check
from attentest.suite.test_loss.cases import (
    COMPONENT,
    check_loss,
    draw_case,
    draw_output,
    draw_sizes,
    keeping,
    number,
    pulled_back,
    require_padding,
    smoothing_rates,
)
from attentest.testing.assertions import holds, near, same_shape
from attentest.testing.draw import Draw
from attentest_spec.setting import Array, Floats, Tokens


@check("loss.padding-ignored")
def test_padding_ignored(subject: Subject, draw: Draw) -> None:
    require_padding(subject)
    probe, output, target = draw_case(subject, draw, length=draw.length(2))
    _independent_of_padding(draw, probe, output, target)


@check("loss.smoothing-ignores-padding")
def test_smoothing_ignores_padding(subject: Subject, draw: Draw) -> None:
    require_padding(subject)
    sizes = draw_sizes(draw, rates=smoothing_rates(subject))
    probe, output, target = draw_case(subject, draw, sizes=sizes, length=draw.length(2))
    _independent_of_padding(draw, probe, output, target)


def _independent_of_padding(draw: Draw, probe: Probe, output: Floats, target: Tokens) -> None:
    """Demand the loss of the reference, and the same one for any output at padding."""
    before = check_loss(probe, output, target)
    other = draw_output(draw, probe.sizes, *target.shape, scale=2.0)
    changed = np.where(keeping(probe, target)[..., None], output, other)
    _equal_up_to_order(probe, changed, target, before, "loss after changing the output at padding")


def _equal_up_to_order(
    probe: Probe, output: Floats, target: Tokens, before: Array, what: str
) -> None:
    """Demand the number `before` of a call with the same terms, in whatever order they add up."""
    found = probe.output(output, target)
    same_shape(found, (), what=what)
    kept = output[keeping(probe, target)]
    near(
        probe.subject,
        found,
        as_floats(before),
        what=what,
        terms=kept.size,
        size=(1.0 + largest(kept)) * len(kept) / number(probe, target),
    )


@check("loss.padding-gradient")
def test_padding_gradient(subject: Subject, draw: Draw) -> None:
    require_padding(subject)
    probe, output, target = draw_case(subject, draw, length=draw.length(2))
    pulled = pulled_back(probe, output, target)
    keep = keeping(probe, target)
    stray = largest(pulled[~keep])
    holds(
        stray == 0,
        f"The gradient at targets that are padding is up to {stray:.6g}, not 0.",
        actual=pulled,
    )
    holds(bool(pulled[keep].any()), "No gradient reaches the output.", actual=pulled)


@check("loss.extra-padding")
def test_extra_padding(subject: Subject, draw: Draw) -> None:
    require_padding(subject)
    probe, output, target = draw_case(subject, draw)
    before = check_loss(probe, output, target)
    columns, left = draw.integer(1, 4), draw.choose((False, True))
    more = draw_output(draw, probe.sizes, len(target), columns)
    pads = np.full((len(target), columns), probe.sizes.target_pad)
    joined = [(output, more), (target, pads)]
    longer, padded = (np.concatenate(pair[::-1] if left else pair, axis=1) for pair in joined)
    what = f"loss with {columns} more columns of padding"
    _equal_up_to_order(probe, longer, padded, before, what)


@check("loss.any-pad-id")
def test_any_pad_id(subject: Subject, draw: Draw) -> None:
    require_padding(subject)
    if subject.limits.pad is not None:
        raise Absent(f"the pad id of {subject.name} is always {subject.limits.pad}")
    sizes = draw_sizes(draw, pads=(1, 4, 2, 3))
    probe, output, target = draw_case(subject, draw, sizes=sizes, length=draw.length(2))
    words = target != sizes.target_pad
    target[words & (draw.rng.random(target.shape) < 0.5)] = 0
    check_loss(probe, output, target)


@check("loss.padding-anywhere")
def test_padding_anywhere(subject: Subject, draw: Draw) -> None:
    require_padding(subject)
    sizes, length = draw_sizes(draw), draw.length(3)
    probe = subject.part(COMPONENT, sizes)
    target = draw.tokens(draw.batch(), length, sizes.target_vocabulary, sizes.target_pad)
    target[:, draw.choose((0, length // 2))] = sizes.target_pad
    check_loss(probe, draw_output(draw, sizes, *target.shape), target)


@check("loss.no-padding")
def test_no_padding(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    probe = subject.part(COMPONENT, sizes)
    batch, length = draw.batch(), draw.length()
    target = draw.tokens(batch, length, sizes.target_vocabulary, sizes.target_pad)
    check_loss(probe, draw_output(draw, sizes, batch, length), target)


@check("loss.without-targets")
def test_without_targets(subject: Subject, draw: Draw) -> None:
    declared = subject.choices.loss_without_targets
    if declared == "unspecified":
        return
    require_padding(subject)
    sizes, batch, length = draw_sizes(draw), draw.batch(), draw.length()
    probe = subject.part(COMPONENT, sizes)
    output = draw_output(draw, sizes, batch, length)
    target = np.full((batch, length), sizes.target_pad)
    found = probe.output(output, target)
    same_shape(found, (), what="loss")
    shown = "zero" if not as_floats(found).any() else "nan" if np.isnan(found) else f"{found:.6g}"
    holds(
        shown == declared,
        f"loss_without_targets is declared as {declared}; the loss of nothing but padding is "
        f"{as_floats(found):.6g}.",
        actual=found,
    )
    if declared == "zero" and "gradient" in probe.part.capabilities:
        pulled = pulled_back(probe, output, target)
        holds(
            not pulled.any(),
            f"The gradient of nothing but padding is up to {largest(pulled):.6g}, not 0.",
            actual=pulled,
        )
