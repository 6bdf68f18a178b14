"""Checks of the chapter `mixture_of_experts`: gradients, trained parameters, untouched inputs."""

from math import prod

import numpy as np

from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_mixture_of_experts.cases import (
    COMPONENT,
    MixtureCall,
    draw_call,
    draw_rows,
    draw_sizes,
    of_expert,
)
from attentest.testing.assertions import holds
from attentest.testing.draw import Draw
from attentest.testing.gradients import (
    agrees_with_differences,
    every_parameter_reached,
    gradient_of,
)
from attentest.testing.invariants import build_with_parameters
from attentest_spec.parameters import count


@check("mixture_of_experts.gradient")
def test_gradient(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    case.checked_output()
    agrees_with_differences(case.probe, case.x, draw=draw)


@check("mixture_of_experts.every-parameter-reached")
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, shape=(3, 4))
    every_parameter_reached(case.probe, case.x, draw=draw)
    chosen = case.chosen()
    row = draw.integer(0, len(chosen) - 1)
    pulled = np.zeros((len(chosen), case.x.shape[-1]))
    pulled[row] = draw.floats(case.x.shape[-1]) + 3.0
    gradient = case.probe.vjp((case.x,), pulled.reshape(case.x.shape))
    for number in range(case.probe.sizes.experts):
        if number in chosen[row]:
            continue
        for name in of_expert(case.probe, number):
            holds(
                not gradient_of(case.probe, gradient, name).any(),
                f"The gradient of the output at one position reaches {name}, whose expert that "
                "position did not choose.",
            )


@check("mixture_of_experts.parameters-trained")
def test_parameters_trained(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    probe, choices = case.probe, subject.choices
    held = probe.do("listing what it holds", lambda part: part.inventory())["parameters"]
    trained = sum(prod(one["shape"]) for one in held.values() if one.get("trained", True))
    wanted = count(COMPONENT, probe.sizes, choices)
    allowed = {wanted}
    if choices.router_bias == "in-choice-alone":
        allowed.add(wanted - probe.sizes.experts)
    holds(
        trained in allowed,
        f"{trained} numbers are trained; the router and {probe.sizes.experts} experts have "
        f"{wanted}.",
    )
    holds(bool(as_floats(case.checked_output()).any()), "The output is 0.")


@check("mixture_of_experts.input-untouched")
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    case = MixtureCall(probe, draw_rows(draw, probe, 2, draw.length()))
    case.checked_output()  # every call compares its inputs before and after
    if "mode" in probe.part.capabilities and not subject.limits.fixed_dropout:
        probe.train()
        case.checked_output()
