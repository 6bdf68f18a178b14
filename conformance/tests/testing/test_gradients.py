"""Gradients and differences of the output: right ones agree, and wrong ones are refused."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gradient_cases import LINEAR, SIZES, Spoil, X, of_input, of_parameter, seeded, spoilt
from oracle_backend import OracleBackend, OraclePart, claimed

from attentest.harness.errors import Absent, Violation
from attentest.harness.subject import Probe, Subject
from attentest.testing.gradients import (
    agrees_with_differences,
    every_parameter_reached,
    gradient_of,
    gradient_to,
    gradients_match_formula,
)
from attentest_spec import Gradient, Sizes

# One gradient


def test_gradient_is_returned_as_floats() -> None:
    probe = spoilt("generator", precision="float32")
    gradient = probe.vjp((X,), np.ones((2, 3, 4)))
    found = gradient_of(probe, gradient, "bias")
    assert found.dtype == np.float64
    assert found.tolist() == [6.0] * 4
    single = replace(gradient, inputs=(np.float32([0.5]),))
    assert gradient_to(single, 0, "x", (1,)).dtype == np.float64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: None, "There is no gradient for bias."),
        (lambda one: one[:2], "The gradient of bias has the shape (2,), not (4,)."),
        (lambda one: one * [1, np.nan, 1, np.inf], "The gradient of bias has 2 of 4 numbers"),
    ],
)
def test_parameter_gradient_has_the_shape_and_is_finite(change: Any, message: str) -> None:
    probe = spoilt("generator", of_parameter("bias", change))
    gradient = probe.vjp((X,), np.ones((2, 3, 4)))
    with pytest.raises(Violation, match=f"^{re.escape(message)}"):
        gradient_of(probe, gradient, "bias")
    gradient_of(probe, gradient, "weight")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: None, "No gradient reaches the query."),
        (lambda one: one[:1], "The gradient of the query has the shape (1, 3, 3), not (2, 3, 3)."),
        (lambda one: one * [1, np.nan, 1], "The gradient of the query has 6 of 18 numbers"),
    ],
)
def test_input_gradient_has_the_shape_and_is_finite(change: Any, message: str) -> None:
    gradient = spoilt("generator", of_input(change)).vjp((X,), np.ones((2, 3, 4)))
    with pytest.raises(Violation, match=f"^{re.escape(message)}"):
        gradient_to(gradient, 0, "query", X.shape)


# Differences of the backend's own output


@pytest.mark.parametrize("component", ["generator", "feed_forward"])
@claimed()
def test_closed_form_agrees(component: str) -> None:
    probe = spoilt(component)
    kept = {name: values.copy() for name, values in probe.parameters.items()}
    agrees_with_differences(probe, X, draw=seeded(probe))
    every_parameter_reached(probe, X, draw=seeded(probe))
    gradients_match_formula(probe, X, names=list(kept), draw=seeded(probe))
    for name, values in kept.items():
        assert (probe.parameters[name] == values).all()
        assert (probe.part.export()[name] == values).all()


@pytest.mark.parametrize(
    "spoil",
    [
        of_input(lambda one: one * (1 + 1e-4)),
        of_input(lambda one: -one),
        of_input(np.zeros_like),
        of_input(lambda one: None),
        of_input(lambda one: one[::-1]),
        of_parameter("weight", lambda one: one * (1 + 1e-4)),
        of_parameter("weight", np.zeros_like),
        of_parameter("weight", lambda one: one[::-1]),
        of_parameter("weight", lambda one: None),
        of_parameter("bias", lambda one: one / 2),
        of_parameter("bias", lambda one: one * np.nan),
    ],
)
def test_wrong_gradient_disagrees(spoil: Spoil) -> None:
    probe = spoilt("generator", spoil)
    with pytest.raises(Violation):
        agrees_with_differences(probe, X, draw=seeded(probe))


def exact() -> tuple[Any, float, float]:
    """Return the step of the input that is drawn, the true slope along all, and its bound."""
    probe = spoilt("generator")
    draw, held = seeded(probe), probe.parameters
    cotangent, step = draw.floats(2, 3, 4, scale=100.0), draw.floats(2, 3, 3)
    weight, bias = draw.floats(4, 3), draw.floats(4)
    moved = step @ held["weight"].T + X @ weight.T + bias
    slope = float((cotangent * moved).sum())
    output = probe.expected(X).output
    return step, slope, 1e-7 * (1.0 + abs(slope) + 100.0 * np.abs(output).max() * output.size)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@claimed()
def test_tolerance_of_a_difference_is_relative_to_the_sum(sign: float) -> None:
    step, slope, bound = exact()
    for share in (0.995, 1.005):
        error = sign * share * bound * step / np.square(step).sum()
        probe = spoilt("generator", of_input(lambda one, error=error: one + error))
        if share < 1:
            agrees_with_differences(probe, X, draw=seeded(probe))
            continue
        text = r"^The gradient along a random direction is (\S+) in \w+ mode; .* by (\S+)\.$"
        with pytest.raises(Violation, match=text) as caught:
            agrees_with_differences(probe, X, draw=seeded(probe))
        pulled, measured = map(float, re.findall(r"-?\d\S*\d", str(caught.value)))
        assert measured == pytest.approx(slope, rel=1e-7)
        assert pulled == pytest.approx(slope, rel=1e-4)


def kinked(*, at: float, part: type[OraclePart] = OraclePart) -> Probe:
    """Return a relu of one input whose kink lies `at` a distance of it."""
    sizes = Sizes(d_model=1, heads=1, d_ff=1)
    subject = Subject(OracleBackend(choices=LINEAR, part=part))
    given = {
        "inner.weight": np.ones((1, 1)),
        "inner.bias": np.array([at - 1.0]),
        "outer.weight": np.ones((1, 1)),
        "outer.bias": np.zeros(1),
    }
    return subject.part("feed_forward", sizes, parameters=given)


@claimed()
def test_kink_within_the_first_step_is_no_disagreement() -> None:
    x = np.ones((1, 1, 1))
    for at in (1.0, 5e-7):
        probe = kinked(at=at)
        agrees_with_differences(probe, x, draw=seeded(probe))
        gradients_match_formula(probe, x, names=["inner.bias", "outer.weight"], draw=seeded(probe))


@claimed()
def test_every_slope_of_a_kink_may_be_the_gradient() -> None:
    probe, x = kinked(at=0.0), np.ones((1, 1, 1))
    agrees_with_differences(probe, x, draw=seeded(probe))
    gradients_match_formula(probe, x, names=["inner.bias", "outer.weight"], draw=seeded(probe))
    every_parameter_reached(probe, x, draw=seeded(probe))
    assert probe.parameters["inner.bias"] == -1.0  # as it was


def test_wrong_gradient_at_a_kink_disagrees() -> None:
    class Doubled(OraclePart):
        def vjp(self, inputs: Any, cotangent: Any) -> Gradient:
            gradient = super().vjp(inputs, cotangent)
            doubled = {name: 2.0 * one for name, one in gradient.parameters.items()}
            return replace(gradient, parameters=doubled)

    probe, x = kinked(at=0.0, part=Doubled), np.ones((1, 1, 1))
    with pytest.raises(Violation, match="along a random direction"):
        agrees_with_differences(probe, x, draw=seeded(probe))
    with pytest.raises(Violation, match=r"gradient of outer\.bias along"):
        gradients_match_formula(probe, x, names=["outer.bias"], draw=seeded(probe))


@pytest.mark.parametrize("share", [0.995, 1.005])
def test_tolerance_of_a_zero_output_is_one_share_plus_that_of_its_slope(share: float) -> None:
    twin = seeded(kinked(at=-1.0))
    cotangent, step = twin.floats(1, 1, 1, scale=100.0).item(), twin.floats(1, 1, 1).item()
    bias = [twin.floats(*shape) for shape in ((1, 1), (1,), (1, 1), (1,))][-1].item()
    error = share * 1e-7 * (1.0 + abs(cotangent * bias)) / step

    class Off(OraclePart):
        def vjp(self, inputs: Any, cotangent: Any) -> Gradient:
            return of_input(lambda one: one + error)(super().vjp(inputs, cotangent))

    probe = kinked(at=-1.0, part=Off)
    if share < 1:
        agrees_with_differences(probe, np.ones((1, 1, 1)), draw=seeded(probe))
        return
    with pytest.raises(Violation):
        agrees_with_differences(probe, np.ones((1, 1, 1)), draw=seeded(probe))


def steps_of(*, at: float) -> set[float]:
    """Return the steps at which the differences around a kink are taken."""
    probe, x = kinked(at=at), np.ones((1, 1, 1))
    draw = seeded(probe)
    draw.floats(1, 1, 1)
    direction = abs(draw.floats(1, 1, 1).item())
    with pytest.MonkeyPatch.context() as patch:
        called: list[Any] = []
        output = probe.output
        patch.setattr(probe, "output", lambda one: called.append(one) or output(one))
        agrees_with_differences(probe, x, draw=seeded(probe))
    return {round(abs(one.item() - 1.0) / direction, 9) for one in called} - {0.0}


@claimed()
def test_smaller_step_is_taken_where_the_larger_disagrees() -> None:
    assert steps_of(at=1.0) == {1e-6}
    assert steps_of(at=5e-7) == {1e-6, 1e-7}


@claimed()
def test_correct_part_of_large_numbers_needs_one_step() -> None:
    probe, called = spoilt("generator"), list[Any]()
    output = probe.output
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "output", lambda one: called.append(one) or output(one))
        agrees_with_differences(probe, X, draw=seeded(probe))
    assert len(called) == 3


@pytest.mark.parametrize("mode", ["evaluation", "training"])
@pytest.mark.parametrize("output", [True, False])
def test_gradient_is_judged_in_either_mode(mode: str, output: bool) -> None:
    held: list[Any] = []

    def spoil(gradient: Gradient) -> Gradient:
        if held[0].part.training != (mode == "training"):
            return gradient
        if output:
            return replace(gradient, output=gradient.output + 1e-6)
        return replace(gradient, inputs=(gradient.inputs[0] * 1.1,))  # type: ignore[operator]

    held.append(spoilt("generator", spoil))
    with pytest.raises(Violation, match=f"in {mode} mode"):
        agrees_with_differences(held[0], X, draw=seeded(held[0]))


def test_part_with_dropout_is_judged_in_evaluation_alone() -> None:
    probe = spoilt("generator")
    probe.sizes = SIZES.but(dropout=0.5)
    modes: list[bool] = []
    pull = probe.vjp
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "vjp", lambda *a: modes.append(probe.part.training) or pull(*a))
        agrees_with_differences(probe, X, draw=seeded(probe))
        assert modes == [False]
        probe.sizes = SIZES
        agrees_with_differences(probe, X, draw=seeded(probe))
    assert modes == [False, False, True]
    assert not probe.part.training


def test_input_without_a_gradient_is_reported_by_number() -> None:
    probe = spoilt("generator", of_input(lambda one: None))
    with pytest.raises(Violation, match=r"^No gradient reaches the input number 0\.$"):
        agrees_with_differences(probe, X, draw=seeded(probe))


def test_formula_moves_no_parameter_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = spoilt("generator", of_parameter("bias", np.zeros_like))
    loaded: list[Any] = []
    monkeypatch.setattr(probe.part, "load", loaded.append)
    with pytest.raises(Violation):
        every_parameter_reached(probe, X, draw=seeded(probe))
    gradients_match_formula(probe, X, names=["weight"], draw=seeded(probe))
    assert not loaded


@pytest.mark.parametrize("check", [agrees_with_differences, gradients_match_formula])
def test_half_precision_resolves_no_difference(check: Any) -> None:
    probe = spoilt("generator", precision="bfloat16")
    more = {"names": ["bias"]} if check is gradients_match_formula else {}
    text = "^differences of the output resolve gradients in float64 and float32 alone$"
    with pytest.raises(Absent, match=text):
        check(probe, X, draw=seeded(probe), **more)


# In single precision, against the formula


@pytest.mark.parametrize("component", ["generator", "feed_forward"])
@claimed()
def test_closed_form_agrees_in_single_precision(component: str) -> None:
    probe = spoilt(component, precision="float32")
    agrees_with_differences(probe, X, draw=seeded(probe))
    gradients_match_formula(probe, X, names=list(probe.parameters), draw=seeded(probe))


@pytest.mark.parametrize(
    "spoil",
    [
        of_input(lambda one: one * (1 + 1e-3)),
        of_input(np.zeros_like),
        of_parameter("weight", lambda one: one * (1 + 1e-3)),
        of_parameter("weight", lambda one: one[::-1]),
        of_parameter("bias", lambda one: one / 2),
    ],
)
def test_wrong_gradient_in_single_precision_disagrees(spoil: Spoil) -> None:
    probe = spoilt("generator", spoil, precision="float32")
    with pytest.raises(Violation):
        agrees_with_differences(probe, X, draw=seeded(probe))
