"""Checks of the chapter `layer_norm`: the epsilon and the variance that are declared."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_layer_norm.cases import draw_call
from attentest.testing.common import (
    HALF_PRECISIONS,
    matches_declared_biases,
    matches_declared_option,
)
from attentest.testing.draw import Draw
from attentest.testing.norm_calls import needs_epsilon
from attentest_spec.choices import Value

_OTHER_EPSILONS = (1e-5, 1e-6, 1e-12, 0.0)
"""Defaults of libraries."""


def _choice(subject: Subject, draw: Draw, choice: str, scale: float, *values: Value) -> None:
    """Demand the declared value of `choice` at a scale that separates it from other `values`."""
    if subject.precision in HALF_PRECISIONS:
        raise Absent(f"{subject.precision} does not distinguish the options of {choice}")
    case = draw_call(subject, draw, scale=scale, widths=(3, 5))
    matches_declared_option(case.probe, case.x, actual=case.output(), choice=choice, others=values)


@check("layer_norm.norm-bias")
def test_norm_bias(subject: Subject, draw: Draw) -> None:
    needs_epsilon(subject, "norm_epsilon")
    case = draw_call(subject, draw, scale=1.0)
    # Means that are exact, so that nothing is left of them. In coarse precisions only zero is sure:
    # what rounding may leave of another mean, a small epsilon makes as large as a bias.
    level = draw.choose((0.0, 3.0, -2.0) if subject.precision == "float64" else (0.0,))
    matches_declared_biases(case.probe, np.full_like(case.x, level), choice="norm_bias")


@check("layer_norm.epsilon-place")
def test_epsilon_place(subject: Subject, draw: Draw) -> None:
    epsilon = subject.choices.norm_epsilon
    if epsilon == 0:
        raise Absent("an epsilon of 0 has no place")
    places = ("inside-root", "added-to-deviation")
    _choice(subject, draw, "norm_epsilon_place", epsilon**0.5, *places)


@check("layer_norm.variance")
def test_variance(subject: Subject, draw: Draw) -> None:
    size = max(1.0, subject.choices.norm_epsilon)
    _choice(subject, draw, "norm_variance", size, "biased", "unbiased")


@check("layer_norm.epsilon")
def test_epsilon(subject: Subject, draw: Draw) -> None:
    epsilon = subject.choices.norm_epsilon
    inside = subject.choices.norm_epsilon_place == "inside-root"
    scale = (epsilon**0.5 if inside else epsilon) or 1e-7
    _choice(subject, draw, "norm_epsilon", scale, 2 * epsilon, epsilon / 2, *_OTHER_EPSILONS)
