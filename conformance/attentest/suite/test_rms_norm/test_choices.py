"""Checks of the chapter `rms_norm`: what is declared about epsilon, weight, bias and rounding."""

import numpy as np

from attentest.harness.arithmetic import unrounded
from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, fits
from attentest.judging.check import check
from attentest.suite.test_rms_norm.cases import draw_call
from attentest.testing.assertions import holds, matches
from attentest.testing.common import (
    HALF_PRECISIONS,
    half_precisions,
    matches_declared_biases,
    matches_declared_option,
)
from attentest.testing.draw import Draw
from attentest.testing.norm_calls import NormCall, needs_epsilon
from attentest_spec import CHOICES
from attentest_spec.choices import Value
from attentest_spec.rms_norm import rms_norm
from attentest_spec.setting import Floats, Setting

_OTHER_EPSILONS = (1e-5, 1e-6, 1e-8, 1e-12, 0.0)
"""Defaults of libraries."""

_SHARE = 0.9
"""Share of the numbers in which two orders of rounding differ that has to agree with one."""


def _choice(subject: Subject, draw: Draw, choice: str, scale: float, *values: Value) -> None:
    """Demand the declared value of `choice` at a scale that separates it from other `values`."""
    if subject.precision in HALF_PRECISIONS:
        raise Absent(f"{subject.precision} does not distinguish the options of {choice}")
    case = draw_call(subject, draw, scale=scale, widths=(3, 5))
    matches_declared_option(case.probe, case.x, actual=case.output(), choice=choice, others=values)


def _options(choice: str) -> list[Value]:
    return [option.name for option in CHOICES[choice].options]


def _length(subject: Subject, width: float) -> float:
    """Return the size of rows at which the declared epsilon counts most."""
    epsilon = float(subject.choices.rms_epsilon)
    match subject.choices.rms_epsilon_place:
        case "inside-root":
            return epsilon**0.5 or 1e-7
        case "added-to-rms" | "floor-of-rms":
            return epsilon or 1e-7
        case _:
            return epsilon / width or 1e-7


@check("rms_norm.epsilon-place")
def test_epsilon_place(subject: Subject, draw: Draw) -> None:
    if subject.choices.rms_epsilon == 0:
        raise Absent("an epsilon of 0 has no place")
    scale = _length(subject, 4.0)
    _choice(subject, draw, "rms_epsilon_place", scale, *_options("rms_epsilon_place"))


@check("rms_norm.epsilon")
def test_epsilon(subject: Subject, draw: Draw) -> None:
    epsilon = float(subject.choices.rms_epsilon)
    others = (2 * epsilon, epsilon / 2, *_OTHER_EPSILONS)
    _choice(subject, draw, "rms_epsilon", _length(subject, 8.0), *others)


@check("rms_norm.weight")
def test_weight(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, scale=1.0, widths=(3, 5))
    if not case.probe.parameters:  # none is declared, and it has none: nothing to tell apart
        matches(case.probe, case.x, actual=case.output())
        return
    if not case.loaded:
        raise Absent(f"{subject.name} gives no access to the weight")
    options = _options("rms_weight") if "gain" in case.probe.parameters else ["none"]
    matches_declared_option(
        case.probe, case.x, actual=case.output(), choice="rms_weight", others=options
    )


@check("rms_norm.bias")
def test_bias(subject: Subject, draw: Draw) -> None:
    needs_epsilon(subject, "rms_epsilon")
    case = draw_call(subject, draw, scale=1.0)
    matches_declared_biases(case.probe, np.zeros_like(case.x), choice="rms_bias")


@check("rms_norm.arithmetic")
def test_arithmetic(subject: Subject, draw: Draw) -> None:
    if subject.precision != "float64":
        raise Absent("only float64 shows a rounding to float32")
    case = draw_call(subject, draw, scale=1.0, widths=(6, 12), shape=(2, 5))
    actual, declared = case.output(), subject.choices
    exact = fits(case.probe, case.x, actual=actual, choices=unrounded(declared))
    shown = "as-computed" if exact else "float32"
    single = declared.but(rms_arithmetic=shown)
    if fits(case.probe, case.x, actual=actual, choices=single):
        holds(
            shown == declared.rms_arithmetic,
            f"rms_arithmetic is declared as {declared.rms_arithmetic}; the numbers show {shown}.",
            actual=actual,
        )
    matches(case.probe, case.x, actual=actual)


@check("rms_norm.cast-order")
def test_cast_order(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        _rounds_as_declared(subject, draw, precision)


def _rounds_as_declared(subject: Subject, draw: Draw, precision: str) -> None:
    declared = subject.choices.rms_cast
    case = draw_call(subject, draw, scale=1.0, widths=(8, 16), shape=(3, 6), precision=precision)
    actual = as_floats(case.output())
    if not case.loaded:
        raise Absent(f"{subject.name} has no weight in which the orders differ")
    before, after = (_rounded(case, order) for order in ("before-weight", "after-weight"))
    apart = before != after
    shares = {
        "before-weight": float((actual == before)[apart].mean()),
        "after-weight": float((actual == after)[apart].mean()),
    }
    if apart.sum() < 10:
        raise Absent("the numbers do not distinguish the orders of rounding")
    matches(case.probe, case.x, actual=actual)
    holds(
        declared == "unspecified" or shares[declared] >= _SHARE,
        f"rms_cast is declared as {declared}. Of {apart.sum()} numbers that depend on it in "
        f"{precision}, {shares['before-weight']:.0%} are those of before-weight and "
        f"{shares['after-weight']:.0%} those of after-weight.",
        actual=actual,
    )


def _rounded(case: NormCall, order: str) -> Floats:
    """Return the output with the roundings to half precision of one order."""
    probe, precision = case.probe, case.probe.precision
    plain = probe.subject.choices.but(rms_weight="none", rms_bias="none")
    rows = rms_norm(Setting(probe.sizes, plain), case.x)
    held, weight = probe.parameters, np.ones(case.x.shape[-1])
    if "gain" in held:
        weight = held["gain"] + (probe.subject.choices.rms_weight == "one-plus-weight")
    if order == "before-weight":
        rows = cast(rows, precision)
    rounded = cast(rows * weight, precision)
    return cast(rounded + held["bias"], precision) if "bias" in held else rounded
