"""The oracles of the optimiser and of clipping against numbers by hand and their laws."""

import numpy as np
import pytest

from attentest_spec.choices import Choices, Value
from attentest_spec.optimiser import (
    BIAS,
    NORM,
    WEIGHT,
    Moments,
    gradient_clipping,
    grouped_optimiser,
    optimiser,
    update,
)
from attentest_spec.setting import Floats, Setting
from attentest_spec.sizes import Sizes


def updated(
    start: list[float], gradients: list[list[float]], rates: list[float], **choices: Value
) -> Floats:
    given = Setting(Sizes(weight_decay=0.5), Choices().but(**choices))
    found = optimiser(given, np.array(start), np.array(gradients), np.array(rates))
    assert found.shape == (len(rates), len(start))
    return found


def clipped(gradients: list[float], limit: float, **choices: Value) -> list[float]:
    given = Setting(choices=Choices().but(**choices))
    values = np.array(gradients)
    found = gradient_clipping(given, values, np.array([1, len(gradients) - 1]), np.array(limit))
    assert found is not values
    return found.tolist()


def test_two_updates_by_hand() -> None:
    found = updated([1.0], [[2.0], [0.0]], [0.1, 0.1])
    second = 0.9 - 0.1 * (0.18 / 0.19) / np.sqrt(0.0784 / 0.0396)
    assert found[:, 0] == pytest.approx([0.9, second], rel=1e-8)
    assert second == pytest.approx(0.8327, abs=5e-5)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_first_update_is_as_long_as_the_rate(scale: float) -> None:
    found = updated([0.0, 0.0], [[3 * scale, -scale]], [0.25])
    assert found[0] == pytest.approx([-0.25, 0.25], rel=1e-5)


def test_places_of_the_epsilon_by_hand() -> None:
    """The gradient is as large as the epsilon, 0.01: m is 0.001 and v 2e-6, before correction."""
    by_place = {"outside-root": 0.5, "inside-root": 0.01 / np.sqrt(1e-4 + 0.01)}
    by_place["uncorrected"] = 0.01 / ((np.sqrt(2e-6) + 0.01) / np.sqrt(0.02))
    for place, expected in by_place.items():
        found = updated([0.0], [[0.01]], [1.0], adam_epsilon=0.01, adam_epsilon_place=place)
        assert found[0, 0] == pytest.approx(-expected, rel=1e-12), place


def test_without_correction_the_first_update_is_shorter() -> None:
    found = updated([0.0], [[5.0]], [1.0], bias_correction="none")
    assert found[0, 0] == pytest.approx(-0.1 / np.sqrt(0.02), rel=1e-8)


def test_decay_by_hand() -> None:
    assert updated([4.0], [[1.0]], [0.1])[0, 0] == pytest.approx(3.9)
    decoupled = updated([4.0], [[1.0]], [0.1], weight_decay="decoupled")
    assert decoupled[0, 0] == pytest.approx(4.0 - 0.1 * 0.5 * 4.0 - 0.1)
    after = updated([4.0], [[1.0]], [0.1], weight_decay="decoupled-after")
    assert after[0, 0] == pytest.approx((4.0 - 0.1) * (1 - 0.1 * 0.5))
    coupled = updated([4.0], [[-2.0]], [0.1], weight_decay="coupled")
    assert coupled[0, 0] == pytest.approx(4.0)  # -2 and 0.5 * 4 cancel


@pytest.mark.parametrize("epsilon", ["1e-9", 0.0])
def test_no_gradient_moves_nothing(epsilon: Value) -> None:
    found = updated([1.5], [[0.0], [0.0]], [0.1, 0.1], adam_epsilon=epsilon)
    assert found.tolist() == [[1.5], [1.5]]


def test_clipping_by_hand() -> None:
    assert clipped([3.0, 4.0], 1.0) == pytest.approx([0.6, 0.8], rel=1e-15)
    assert clipped([3.0, 4.0], 6.0) == [3.0, 4.0]
    assert clipped([3.0, 4.0], 5.0) == [3.0, 4.0]
    assert clipped([0.3, 0.4], 0.25) == pytest.approx([0.15, 0.2], rel=1e-15)
    assert clipped([0.0, 0.0], 1.0) == [0.0, 0.0]
    assert clipped([3.0, 4.0], 1.0, clip_epsilon=5.0) == pytest.approx([0.3, 0.4], rel=1e-15)


@pytest.mark.parametrize(
    "wrong",
    [{"adam_beta1": 1.0}, {"adam_beta2": -0.1}, {"adam_epsilon": -1.0}, {"clip_epsilon": 0.0}],
    ids=str,
)
def test_impossible_constants_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Choices().but(**wrong)


def grouped(gradients: list[list[float]], present: list[list[bool]], **choices: Value) -> Floats:
    """Return the parameters of a weight and of a bias, of 4 each, after updates at a rate of 1."""
    given = Setting(Sizes(weight_decay=0.5), Choices().but(weight_decay="decoupled", **choices))
    rates, ones = np.ones(len(gradients)), np.array([1, 1])
    start, kinds = np.array([4.0, 4.0]), np.array([0, 1])
    arrays = (ones, kinds, np.array(present), 0)
    return grouped_optimiser(given, start, np.array(gradients), rates, *arrays)


def test_weights_alone_decay_where_that_is_declared() -> None:
    both = grouped([[1.0, 1.0]], [[True, True]])
    assert both[0].tolist() == pytest.approx([1.0, 1.0])
    weights = grouped([[1.0, 1.0]], [[True, True]], decay_groups="weights")
    assert weights[0].tolist() == pytest.approx([1.0, 3.0])


@pytest.mark.parametrize(("kind", "expected"), [(WEIGHT, 1.0), (BIAS, 3.0), (NORM, 3.0)])
def test_only_weights_decay_where_that_is_declared(kind: int, expected: float) -> None:
    """A rate of 1 moves by 1, and a decay of 0.5 takes half of 4."""
    given = Setting(
        Sizes(weight_decay=0.5), Choices(weight_decay="decoupled", decay_groups="weights")
    )
    arrays = (np.array([1]), np.array([kind]), np.array([[True]]), 0)
    found = grouped_optimiser(given, np.array([4.0]), np.array([[1.0]]), np.ones(1), *arrays)
    assert found.tolist() == [[pytest.approx(expected)]]


def test_an_array_without_a_gradient_neither_moves_nor_decays() -> None:
    found = grouped([[1.0, 1.0], [9.0, 1.0]], [[True, True], [False, True]])
    assert found[:, 0].tolist() == pytest.approx([1.0, 1.0])
    assert found[1, 1] != found[0, 1]


def test_last_array_without_a_gradient_stays_as_it_is() -> None:
    found = grouped([[1.0, 9.0], [1.0, 9.0]], [[True, False], [True, False]])
    assert found[:, 1].tolist() == [4.0, 4.0]


def test_no_updates_give_no_parameters() -> None:
    assert optimiser(Setting(), np.ones(2), np.ones((0, 2)), np.ones(0)).shape == (0, 2)


def test_counts_of_an_array_that_comes_late() -> None:
    late = [[False, True], [True, True]]
    own = grouped([[0.0, 1.0], [1.0, 1.0]], late)
    assert own[1, 0] == pytest.approx(4.0 - 2.0 - 1.0)
    every = grouped([[0.0, 1.0], [1.0, 1.0]], late, update_count="all")
    size = (0.1 / (1 - 0.9**2)) / np.sqrt(0.02 / (1 - 0.98**2))
    assert every[1, 0] == pytest.approx(4.0 - 2.0 - size)


@pytest.mark.parametrize("decay", ["none", "coupled", "decoupled", "decoupled-after"])
def test_updates_one_by_one_are_those_of_all_at_once(decay: str) -> None:
    rng = np.random.default_rng(0)
    given = Setting(Sizes(weight_decay=0.5), Choices(weight_decay=decay))
    start, gradients = rng.normal(size=4), rng.normal(size=(3, 4))
    values, moments, rates = start, Moments.begin(start), np.array([0.1, 0.2, 0.3])
    for gradient, rate, after in zip(
        gradients, rates, optimiser(given, start, gradients, rates), strict=True
    ):
        values, moments = update(given, values, moments, gradient, float(rate))
        np.testing.assert_array_equal(values, after)
    assert moments.step == 3


def test_update_stays_in_the_precision_of_the_parameters() -> None:
    start = np.array([1.0, -2.0], dtype=np.float32)
    values, moments = update(Setting(), start, Moments.begin(start), start, 0.1)
    assert values.dtype == moments.mean.dtype == moments.square.dtype == np.float32
