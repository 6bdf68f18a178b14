"""Checks of the chapter `model`: gradients."""

from attentest.harness.subject import Subject
from attentest.harness.tolerances import largest
from attentest.judging.check import check
from attentest.suite.test_model.cases import (
    call_model,
    draw_call,
    real_token,
    steepen,
    with_every_id,
    without_pads,
)
from attentest.testing.assertions import holds
from attentest.testing.draw import Draw
from attentest.testing.gradients import (
    agrees_with_differences,
    every_parameter_reached,
    gradient_of,
)


@check("model.every-parameter-reached", examples=2)
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    lengths = (draw.length(2, 4), draw.length(2, 4))
    case = draw_call(subject, draw, batch=3, lengths=lengths, layers=draw.several_layers())
    every_parameter_reached(case.probe, *without_pads(draw, case), draw=draw)


@check("model.parameter-gradient", examples=2)
def test_parameter_gradient(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, layers=draw.several_layers())
    source, target = with_every_id(draw, case)
    call_model(case.probe, source, target)
    agrees_with_differences(case.probe, source, target, draw=draw)


@check("model.gradient-finite", examples=2)
def test_gradient_finite(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, lengths=(draw.length(2), draw.length(3)))
    last = None if "target" in subject.limits.right_padded else 2
    case.source[0, -1], case.target[0, 1:last] = case.sizes.source_pad, case.sizes.target_pad
    case.source[0, 0] = real_token(case.sizes.source_pad)
    real = case.real[..., None]
    pulled = draw.floats(*case.target.shape, case.sizes.target_vocabulary) * real
    for factor in (1.0, 1e3):
        steepen(case, factor)
        gradient = case.probe.vjp(case.inputs, pulled)
        found = [gradient_of(case.probe, gradient, name) for name in case.probe.parameters]
        size = max(largest(one) for one in found)
        holds(size > 0 or factor > 1, "No gradient reaches any parameter.")
