"""The feed-forward oracle against values by hand, closed forms, and torch's functions."""

import math

import numpy as np
import pytest
import torch
from reference import ACTIVATIONS, setting, tensor
from torch.nn import functional

from attentest_spec.choices import PAPER, Value
from attentest_spec.feed_forward import activate, feed_forward
from attentest_spec.parameters import draw
from attentest_spec.setting import Floats, Setting
from attentest_spec.sizes import Sizes

FAR = np.array([-1e3, -40.0, -8.0, -1.0, -1e-3, 0.0, 1e-3, 1.0, 8.0, 40.0, 1e3])


def by_hand(**choices: Value) -> Setting:
    """Give the two units of the chapter: they see x + 1 and -x, and their sum comes out."""
    return Setting(
        choices=PAPER.but(**choices),
        parameters={
            "inner.weight": np.array([[1.0], [-1.0]]),
            "inner.bias": np.array([1.0, 0.0]),
            "outer.weight": np.array([[1.0, 2.0]]),
            "outer.bias": np.array([10.0]),
        },
    )


@pytest.mark.parametrize(("x", "expected"), [(2.0, 13.0), (-3.0, 16.0), (0.0, 11.0)])
def test_worked_values_of_the_chapter(x: float, expected: float) -> None:
    assert feed_forward(by_hand(), np.array([[[x]]])).tolist() == [[[expected]]]


@pytest.mark.parametrize(("x", "expected"), [(2.0, 2.0), (-3.0, 6.0), (0.0, 0.0)])
def test_worked_values_without_biases(x: float, expected: float) -> None:
    weights = {name: by_hand()[name] for name in ("inner.weight", "outer.weight")}
    bare = Setting(choices=PAPER.but(feed_forward_bias="none"), parameters=weights)
    assert feed_forward(bare, np.array([[[x]]])).tolist() == [[[expected]]]


def test_gelu_of_one_is_the_normal_distribution_function() -> None:
    found = activate("gelu", np.array([1.0, -1.0]))
    np.testing.assert_allclose(found, [0.8413447460685429, -0.15865525393145707], rtol=1e-15)


def test_squared_relu_by_hand() -> None:
    assert activate("relu-squared", np.array([3.0, -2.0, 0.5])).tolist() == [9.0, 0.0, 0.25]


def test_silu_of_the_logarithm_of_three_is_three_quarters_of_it() -> None:
    x = math.log(3.0)
    np.testing.assert_allclose(activate("silu", np.array([x, -x])), [0.75 * x, -0.25 * x])


@pytest.mark.parametrize(
    ("activation", "at_one"),
    [("gelu-tanh", 0.8411919906082768), ("gelu-sigmoid", 0.8457957659328212)],
)
def test_approximations_of_gelu_differ_from_it_in_the_third_digit(activation, at_one) -> None:
    found = activate(activation, np.array([1.0, -1.0]))
    np.testing.assert_allclose(found, [at_one, at_one - 1.0], rtol=1e-14)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_activations_equal_torch(activation: str) -> None:
    expected = ACTIVATIONS[activation](tensor(FAR)).numpy()
    np.testing.assert_allclose(activate(activation, FAR), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("activation", [one for one in ACTIVATIONS if not one.startswith("relu")])
def test_smooth_activations_differ_from_their_mirror_by_the_line(activation: str) -> None:
    mirrored = activate(activation, FAR) - activate(activation, -FAR)
    np.testing.assert_allclose(mirrored, FAR, rtol=1e-15)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_equals_torch(rng: np.random.Generator, activation: str) -> None:
    given = setting("feed_forward", rng, activation=activation)
    x = rng.normal(size=(2, 5, 6)) * 3.0
    inner = functional.linear(tensor(x), tensor(given["inner.weight"]), tensor(given["inner.bias"]))
    outer = tensor(given["outer.weight"]), tensor(given["outer.bias"])
    expected = functional.linear(ACTIVATIONS[activation](inner), *outer).numpy()
    np.testing.assert_allclose(feed_forward(given, x), expected, rtol=0, atol=1e-12)


def test_positions_do_not_know_of_each_other(rng: np.random.Generator) -> None:
    given = setting("feed_forward", rng)
    x = rng.normal(size=(2, 5, 6))
    whole = feed_forward(given, x)
    for sample, position in np.ndindex(2, 5):
        alone = feed_forward(given, x[sample, position])
        np.testing.assert_allclose(whole[sample, position], alone, atol=1e-14)


def test_input_stays_as_it_was(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 5, 6))
    before: Floats = x.copy()
    feed_forward(setting("feed_forward", rng), x)
    assert (x == before).all()


@pytest.mark.parametrize("x", [-0.5, -6.0, -12.0, -30.0])
def test_smooth_activations_keep_their_digits_far_below_zero(x: float) -> None:
    gelu, silu = (activate(name, np.array([x])).item() for name in ("gelu", "silu"))
    assert gelu == pytest.approx(x * math.erfc(-x / math.sqrt(2.0)) / 2, rel=1e-14, abs=0.0)
    assert silu == pytest.approx(x * math.exp(x) / (1.0 + math.exp(x)), rel=1e-14, abs=0.0)


def test_silu_of_the_lowest_scores_is_their_power() -> None:
    assert activate("silu", np.array([-600.0])).item() == pytest.approx(
        -600.0 * math.exp(-600.0), rel=1e-12, abs=0.0
    )


def test_worked_values_with_a_gate() -> None:
    choices = PAPER.but(feed_forward_gate="gated")
    held = {
        "gate.weight": np.array([[1.0], [1.0]]),
        "gate.bias": np.array([0.0, 2.0]),
        "inner.weight": np.array([[1.0], [-1.0]]),
        "inner.bias": np.array([1.0, 0.0]),
        "outer.weight": np.array([[1.0, 1.0]]),
        "outer.bias": np.array([0.0]),
    }
    given = Setting(Sizes(d_model=1, d_ff=2), choices, held)
    assert feed_forward(given, np.array([[2.0], [-1.0]])).tolist() == [[-2.0], [1.0]]


@pytest.mark.parametrize("name", ["relu", "silu", "gelu", "sigmoid"])
def test_a_gate_equals_torch(rng: np.random.Generator, name: str) -> None:
    choices = PAPER.but(feed_forward_gate="gated", activation=name, feed_forward_bias="none")
    sizes = Sizes(d_model=5, d_ff=7)
    held = draw("feed_forward", sizes, choices, rng)
    assert list(held) == ["gate.weight", "inner.weight", "outer.weight"]
    x = rng.normal(size=(2, 3, 5))
    gate, inner, outer = (torch.from_numpy(one) for one in held.values())
    function = torch.sigmoid if name == "sigmoid" else getattr(torch.nn.functional, name)
    given = torch.from_numpy(x)
    expected = (function(given @ gate.T) * (given @ inner.T)) @ outer.T
    found = feed_forward(Setting(sizes, choices, held), x)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-13)
