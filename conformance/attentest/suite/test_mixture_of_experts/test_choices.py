"""Checks of the chapter `mixture_of_experts`: scores, weights, biases and the shared expert."""

from collections.abc import Collection
from copy import copy

import numpy as np

from attentest.harness.arithmetic import unrounded
from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.harness.tolerances import fits
from attentest.judging.check import check
from attentest.suite.test_mixture_of_experts.cases import (
    COMPONENT,
    MixtureCall,
    draw_call,
    draw_sizes,
)
from attentest.testing.assertions import holds, matches
from attentest.testing.common import HALF_PRECISIONS, fits_one_option, matches_declared_option
from attentest.testing.draw import Draw
from attentest_spec import CHOICES
from attentest_spec.choices import Value
from attentest_spec.parameters import draw_one, shapes
from attentest_spec.setting import Floats

_SCALES: tuple[Value, ...] = ("none", 2.5, 16.0, 1.8, 1.0)
"""Factors of published models."""


def _wide_call(subject: Subject, draw: Draw, choice: str, bias: float = 0.125) -> MixtureCall:
    if subject.precision in HALF_PRECISIONS:
        raise Absent(f"{subject.precision} does not distinguish the options of {choice}")
    return draw_call(subject, draw, shape=(2, 4), bias=bias)


def _distinct(subject: Subject, draw: Draw, choice: str, others: Collection[Value]) -> None:
    """Demand the declared value of `choice`, and none of the `others`."""
    case = _wide_call(subject, draw, choice)
    matches_declared_option(case.probe, case.x, actual=case.output(), choice=choice, others=others)


def _options(choice: str) -> list[Value]:
    return [option.name for option in CHOICES[choice].options]


@check("mixture_of_experts.scores")
def test_scores(subject: Subject, draw: Draw) -> None:
    if subject.choices.routing_weights == "renormalised":
        sizes = draw_sizes(draw, chosen=2)  # the weight of a single expert is 1 in any case
    else:
        sizes = draw_sizes(draw)
    if subject.precision in HALF_PRECISIONS:
        raise Absent(f"{subject.precision} does not distinguish the options of router_scores")
    case = draw_call(subject, draw, sizes=sizes, shape=(2, 4))
    others = _options("router_scores")
    matches_declared_option(
        case.probe, case.x, actual=case.output(), choice="router_scores", others=others
    )


@check("mixture_of_experts.weights")
def test_weights(subject: Subject, draw: Draw) -> None:
    _distinct(subject, draw, "routing_weights", _options("routing_weights"))


@check("mixture_of_experts.scale")
def test_scale(subject: Subject, draw: Draw) -> None:
    declared = subject.choices.routing_scale
    others = [one for one in _SCALES if _factor(one) != _factor(declared)]
    _distinct(subject, draw, "routing_scale", others)


def _factor(scale: Value) -> float:
    return 1.0 if scale == "none" else float(scale)


@check("mixture_of_experts.router-bias")
def test_router_bias(subject: Subject, draw: Draw) -> None:
    _fits_one(subject, draw, "router_bias", "in-scores")


@check("mixture_of_experts.shared-expert")
def test_shared_expert(subject: Subject, draw: Draw) -> None:
    _fits_one(subject, draw, "shared_expert", "gated")


def _fits_one(subject: Subject, draw: Draw, choice: str, fullest: str) -> None:
    """Demand the declared option alone, given the parameters of the `fullest` one."""
    case = _wide_call(subject, draw, choice, bias=0.5)
    full = shapes(COMPONENT, case.probe.sizes, subject.choices.but(**{choice: fullest}))
    without: dict[str, Floats] = {
        name: draw_one(name, shape, draw.rng)
        for name, shape in full.items()
        if name not in case.probe.parameters
    }
    actual = case.output()
    if _is_shown(case, choice, without):
        fits_one_option(case.probe, case.x, actual=actual, choice=choice, without=without)
    else:
        matches(case.probe, case.x, actual=actual)


def _is_shown(case: MixtureCall, choice: str, without: dict[str, Floats]) -> bool:
    """Say whether the declared option of `choice` and the others give different outputs."""
    full, declared = copy(case.probe), case.probe.subject.choices
    full.parameters = {**without, **case.probe.parameters}
    others = [declared.but(**{choice: one}) for one in _options(choice) if one != declared[choice]]
    expected = full.expected(case.x).output
    return not any(fits(full, case.x, actual=expected, choices=one) for one in others)


@check("mixture_of_experts.arithmetic")
def test_arithmetic(subject: Subject, draw: Draw) -> None:
    if subject.precision != "float64":
        raise Absent("only float64 shows a rounding to float32")
    chosen = 2 if subject.choices.routing_weights == "renormalised" else 1
    case = draw_call(subject, draw, sizes=draw_sizes(draw, chosen=chosen), shape=(3, 5))
    actual, declared = case.output(), subject.choices
    exact = fits(case.probe, case.x, actual=actual, choices=unrounded(declared))
    shown = "as-computed" if exact else "float32"
    single = declared.but(routing_arithmetic=shown)
    if fits(case.probe, case.x, actual=actual, choices=single):
        holds(
            shown == declared.routing_arithmetic,
            f"routing_arithmetic is declared as {declared.routing_arithmetic}; the numbers show "
            f"{shown}.",
            actual=np.asarray(actual),
        )
    matches(case.probe, case.x, actual=actual)
