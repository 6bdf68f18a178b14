"""Checks of the chapter `multi_head_attention`: gradients."""

from attentest.harness.subject import Subject
from attentest.harness.tolerances import largest
from attentest.judging.check import check
from attentest.suite.test_multi_head_attention.cases import (
    COMPONENT,
    INPUTS,
    OPEN_FIRST,
    UNORDERED,
    build_loaded,
    draw_call,
    draw_sizes,
    require_cross,
)
from attentest.testing.assertions import finite, holds
from attentest.testing.draw import Draw
from attentest.testing.gradients import (
    agrees_with_differences,
    every_parameter_reached,
    gradient_to,
)
from attentest.testing.invariants import build_with_parameters


@check("multi_head_attention.every-parameter-reached")
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    probe = build_loaded(subject, draw, draw_sizes(draw))
    case = draw_call(draw, probe, kinds=UNORDERED, lengths=(draw.length(2), draw.length(3)))
    every_parameter_reached(probe, *case.inputs, draw=draw)


@check("multi_head_attention.gradient")
def test_gradient(subject: Subject, draw: Draw) -> None:
    probe = build_loaded(subject, draw, draw_sizes(draw, low=min(2, subject.limits.heads or 2)))
    case = draw_call(draw, probe, kinds=OPEN_FIRST, lengths=(draw.length(), draw.length(2)))
    agrees_with_differences(probe, *case.inputs, draw=draw)


@check("multi_head_attention.gradient-to-masked-keys")
def test_gradient_to_masked_keys(subject: Subject, draw: Draw) -> None:
    require_cross(subject)
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    case = draw_call(draw, probe, hiding=True, kinds=("padding",), scale=draw.choose((1.0, 30.0)))
    cotangent = draw.floats(*case.query.shape)
    gradient = probe.vjp(case.inputs, cotangent)
    hidden = ~case.keep.any(axis=(1, 2))
    for number, name in enumerate(INPUTS):
        shape = case.query.shape if name == "query" else case.key.shape
        pulled = gradient_to(gradient, number, name, shape)
        if name != "query":
            rows = pulled[hidden]
            holds(not rows.any(), f"A masked {name} has a gradient of {largest(rows):.6g}.")
        if name == "value":
            holds(pulled.any(), "No gradient reaches the values that are not masked.")
    for name, values in gradient.parameters.items():
        finite(values, what=f"gradient of {name}")
