"""Gradients of tied and of all parameters, and differences of the reference."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gradient_cases import SIZES, Measured, X, of_parameter, seeded, spoilt
from oracle_backend import OracleBackend, OraclePart, claimed

from attentest.harness.errors import Violation
from attentest.harness.subject import Probe, Subject
from attentest.testing.gradients import (
    agrees_with_differences,
    every_parameter_reached,
    gradients_match_formula,
)
from attentest_spec import Gradient, Sizes
from attentest_spec.parameters import draw as draw_parameters

# Tied parameters: their gradient is told under each name, and counted once


def twin(part: type[OraclePart] = Measured) -> tuple[Probe, Any]:
    sizes = Sizes(d_model=2, heads=1, d_ff=2)
    choices = {"norm_sharing": "shared", "activation": "silu", "norm_epsilon": 0.5}
    subject = Subject(OracleBackend(choices=choices, part=part))
    rng = np.random.default_rng(7)
    given = draw_parameters("encoder_layer", sizes, subject.choices, rng)
    x = np.round(np.random.default_rng(3).normal(size=(1, 2, 2)), 2)
    return subject.part("encoder_layer", sizes, parameters=given), x


@claimed()
def test_every_float_input_is_moved() -> None:
    one = Subject(OracleBackend(part=Measured)).part("attention", SIZES)
    inputs = (*np.round(np.random.default_rng(3).normal(size=(3, 1, 1, 2, 3)), 2), None)
    agrees_with_differences(one, *inputs, draw=seeded(one))


@claimed()
def test_tied_gradient_is_counted_once() -> None:
    probe, x = twin()
    agrees_with_differences(probe, x, None, draw=seeded(probe))
    names = ["self_attention_norm.gain", "feed_forward_norm.gain", "feed_forward_norm.bias"]
    gradients_match_formula(probe, x, None, names=names, draw=seeded(probe))


def test_half_a_tied_gradient_is_wrong() -> None:
    class Half(Measured):
        def vjp(self, inputs: Any, cotangent: Any) -> Gradient:
            gradient = super().vjp(inputs, cotangent)
            name = "feed_forward_norm.gain"
            halved = {**gradient.parameters, name: gradient.parameters[name] / 2}
            return replace(gradient, parameters=halved)

    probe, x = twin(Half)
    with pytest.raises(Violation, match=r"^The gradient of feed_forward_norm\.gain along"):
        gradients_match_formula(
            probe, x, None, names=["feed_forward_norm.gain"], draw=seeded(probe)
        )
    gradients_match_formula(probe, x, None, names=["self_attention_norm.gain"], draw=seeded(probe))


# Every parameter


def test_parameter_without_a_gradient_is_reported_with_its_effect() -> None:
    probe = spoilt("generator", of_parameter("bias", np.zeros_like))
    draw = seeded(probe)
    draw.floats(2, 3, 4)
    move = draw.floats(4)
    share = np.abs(move).max() / np.abs(probe.expected(X).output).max()
    text = rf"^No gradient reaches bias, and moving it .* by {share:.3g} of it per unit\.$"
    with pytest.raises(Violation, match=text):
        every_parameter_reached(probe, X, draw=seeded(probe))


def test_excepted_names_need_no_gradient() -> None:
    probe = spoilt("feed_forward", of_parameter("inner.bias", np.zeros_like))
    for excepted in (("inner.bias",), ("bias",), ("weight", "bias")):
        found = every_parameter_reached(probe, X, draw=seeded(probe), except_=excepted)
        assert set(found) == set(probe.parameters)
    for excepted in ((), ("ner.bias",), ("as",), ("inner",), ("key.bias",)):
        with pytest.raises(Violation, match=r"^No gradient reaches inner\.bias,"):
            every_parameter_reached(probe, X, draw=seeded(probe), except_=excepted)


def test_bias_of_the_keys_is_excepted_by_itself() -> None:
    class Keyless(OraclePart):
        def vjp(self, inputs: Any, cotangent: Any) -> Gradient:
            ones = {name: np.ones_like(one) for name, one in self.parameters.items()}
            return Gradient(cotangent, (None,), {**ones, "key.bias": 0 * ones["key.bias"]})

    subject = Subject(OracleBackend(choices={"projection_bias": "present"}, part=Keyless))
    given = draw_parameters(
        "multi_head_attention", SIZES, subject.choices, np.random.default_rng(7)
    )
    probe = subject.part("multi_head_attention", SIZES, parameters=given)
    every_parameter_reached(probe, X, X, X, None, draw=seeded(probe))


def test_parameter_unused_by_the_reference_needs_no_gradient() -> None:
    probe = spoilt("feed_forward")
    probe.load({**probe.parameters, "inner.bias": np.full(5, -100.0)})
    found = every_parameter_reached(probe, X, draw=seeded(probe))
    assert not found["inner.weight"].any()
    assert found["outer.bias"].any()
    zeros = {name: np.zeros_like(values) for name, values in probe.parameters.items()}
    probe.load({**zeros, "inner.bias": np.full(5, -100.0)})
    every_parameter_reached(probe, X, draw=seeded(probe))


def test_gradient_that_is_no_number_is_no_gradient() -> None:
    probe = spoilt("generator", of_parameter("bias", lambda one: one * np.nan))
    with pytest.raises(Violation, match="not finite"):
        every_parameter_reached(probe, X, draw=seeded(probe))


# Differences of the oracle


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_gradient_unlike_the_formula_is_refused(name: str) -> None:
    probe = spoilt("generator", of_parameter(name, lambda one: one * (1 + 1e-4)))
    text = rf"^The gradient of {name} along .* is \S+; in the formula the output changes by \S+\.$"
    with pytest.raises(Violation, match=text):
        gradients_match_formula(probe, X, names=["weight", "bias"], draw=seeded(probe))
    other = {"weight": "bias", "bias": "weight"}[name]
    gradients_match_formula(probe, X, names=[other], draw=seeded(probe))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@claimed()
def test_tolerance_of_a_formula_is_relative_to_the_sum(sign: float) -> None:
    plain = spoilt("generator")
    draw, output = seeded(plain), plain.expected(X).output
    cotangent, move = draw.floats(2, 3, 4), draw.floats(4)
    slope = float((cotangent * move).sum())
    bound = 1e-7 * (1.0 + abs(slope) + np.abs(output).max() * output.size)
    for share in (0.995, 1.005):
        error = sign * share * bound * move / np.square(move).sum()
        probe = spoilt("generator", of_parameter("bias", lambda one, error=error: one + error))
        if share < 1:
            gradients_match_formula(probe, X, names=["bias"], draw=seeded(probe))
            continue
        with pytest.raises(Violation) as caught:
            gradients_match_formula(probe, X, names=["bias"], draw=seeded(probe))
        assert f"output changes by {slope:.7g}" in str(caught.value)


@claimed()
def test_output_beside_weights_is_pulled_by_itself() -> None:
    class Told(OraclePart):
        def vjp(self, inputs: Any, cotangent: Any) -> Gradient:
            assert cotangent.shape == (1, 1, 2, 3)
            return Gradient(cotangent, (), {})

    one = Subject(OracleBackend(part=Told)).part("attention", SIZES)
    inputs = (np.ones((1, 1, 2, 3)), np.ones((1, 1, 4, 3)), np.ones((1, 1, 4, 3)), None)
    gradients_match_formula(one, *inputs, names=[], draw=seeded(one))
