"""The layer norm oracle against values by hand, statistics, and torch's functions."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from attentest_spec.choices import PAPER, Value
from attentest_spec.layer_norm import layer_norm
from attentest_spec.parameters import draw
from attentest_spec.setting import Floats, Setting
from attentest_spec.sizes import Sizes


def setting(rng: np.random.Generator, **choices: Value) -> Setting:
    """Draw the gain and the bias of a norm over 7 columns."""
    sizes = Sizes(d_model=7)
    chosen = PAPER.but(**choices)
    return Setting(sizes, chosen, draw("layer_norm", sizes, chosen, rng))


def plain(width: int, **choices: Value) -> Setting:
    """Return a norm with its initial parameters: gain 1, bias 0."""
    initial = {"gain": np.ones(width), "bias": np.zeros(width)}
    return Setting(Sizes(d_model=width), PAPER.but(**choices), initial)


def test_worked_values_of_the_chapter() -> None:
    row = np.array([1.0, 3.0])
    assert layer_norm(plain(2, norm_epsilon=3.0), row).tolist() == [-0.5, 0.5]
    outside = plain(2, norm_epsilon=3.0, norm_epsilon_place="added-to-deviation")
    assert layer_norm(outside, row).tolist() == [-0.25, 0.25]
    unbiased = plain(2, norm_epsilon=2.0, norm_variance="unbiased")
    assert layer_norm(unbiased, row).tolist() == [-0.5, 0.5]


def test_without_a_bias_the_row_is_the_gain_times_its_deviations() -> None:
    bare = Setting(
        Sizes(d_model=2),
        PAPER.but(norm_epsilon=3.0, norm_bias="none"),
        {"gain": np.array([2.0, 4.0])},
    )
    assert layer_norm(bare, np.array([1.0, 3.0])).tolist() == [-1.0, 2.0]
    assert layer_norm(bare, np.array([7.0, 7.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-5, 0.5])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_equals_torch(rng: np.random.Generator, epsilon: float, scale: float) -> None:
    given = setting(rng, norm_epsilon=epsilon)
    x = scale * rng.normal(size=(2, 5, 7))
    gain, bias = torch.from_numpy(given["gain"]), torch.from_numpy(given["bias"])
    expected = functional.layer_norm(torch.from_numpy(x), (7,), gain, bias, epsilon).numpy()
    np.testing.assert_allclose(layer_norm(given, x), expected, atol=1e-12)


@pytest.mark.parametrize("variance", ["biased", "unbiased"])
@pytest.mark.parametrize("place", ["inside-root", "added-to-deviation"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_every_option_equals_torch_statistics(
    rng: np.random.Generator, variance: str, place: str, scale: float
) -> None:
    given = setting(rng, norm_variance=variance, norm_epsilon_place=place, norm_epsilon=1e-4)
    x = torch.from_numpy(scale * rng.normal(size=(3, 2, 7)))
    spread = x.var(-1, keepdim=True, correction=int(variance == "unbiased"))
    inside = place == "inside-root"
    divisor = (spread + 1e-4).sqrt() if inside else spread.sqrt() + 1e-4
    gain, bias = torch.from_numpy(given["gain"]), torch.from_numpy(given["bias"])
    expected = gain * (x - x.mean(-1, keepdim=True)) / divisor + bias
    np.testing.assert_allclose(layer_norm(given, x.numpy()), expected.numpy(), atol=1e-12)


@pytest.mark.parametrize("place", ["inside-root", "added-to-deviation"])
@pytest.mark.parametrize("level", [0.0, 3.0, 0.1, 1e6])
def test_a_constant_row_gives_the_bias(rng: np.random.Generator, place: str, level: float) -> None:
    given = setting(rng, norm_epsilon_place=place)
    found = layer_norm(given, np.full((2, 7), level))
    np.testing.assert_allclose(found, np.tile(given["bias"], (2, 1)), atol=1e-12)


def test_a_constant_row_without_epsilon_has_no_value() -> None:
    assert np.isnan(layer_norm(plain(3, norm_epsilon=0.0), np.ones(3))).all()


@pytest.mark.parametrize("offset", [1e3, 1e6, -(2.0**40)])
def test_a_large_offset_costs_no_digits(rng: np.random.Generator, offset: float) -> None:
    given = setting(rng)
    x = np.round(rng.normal(size=(5, 7)) * 1024) / 1024  # so that adding the offset is exact
    np.testing.assert_allclose(layer_norm(given, x + offset), layer_norm(given, x), atol=1e-12)


@pytest.mark.parametrize("variance", ["biased", "unbiased"])
def test_initial_rows_have_mean_zero_and_deviation_one(
    rng: np.random.Generator, variance: str
) -> None:
    given = plain(5, norm_variance=variance, norm_epsilon=0.0)
    found: Floats = layer_norm(given, rng.normal(size=(3, 5)))
    np.testing.assert_allclose(found.mean(-1), 0.0, atol=1e-15)
    np.testing.assert_allclose(found.std(-1, ddof=int(variance == "unbiased")), 1.0, rtol=1e-14)


def test_width_one() -> None:
    assert layer_norm(plain(1), np.array([[4.0]])).tolist() == [[0.0]]
    with pytest.raises(ValueError, match=r"^The unbiased variance divides by n - 1.*width 1\.$"):
        layer_norm(plain(1, norm_variance="unbiased"), np.array([[4.0]]))


def test_a_row_is_untouched_by_rows_far_from_it(rng: np.random.Generator) -> None:
    given, x = setting(rng), rng.normal(size=(2, 7))
    far = np.concatenate([x, np.full((1, 7), 1e12)])
    np.testing.assert_array_equal(layer_norm(given, far)[:2], layer_norm(given, x))


@pytest.mark.parametrize("width", [2, 7, 128, 512])
def test_unbiased_variance_divides_by_one_less_at_every_width(width: int) -> None:
    row = np.where(np.arange(width) % 2 == 0, 1.0, -1.0) if width % 2 == 0 else np.arange(width)
    found = layer_norm(plain(width, norm_variance="unbiased", norm_epsilon=0.0), row * 1.0)
    expected = (row - row.mean()) / np.std(row, ddof=1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("place", ["inside-root", "added-to-deviation"])
def test_a_negative_gain_mirrors_its_column(place: str) -> None:
    choices = PAPER.but(norm_epsilon=1.0, norm_epsilon_place=place, norm_bias="none")
    x = np.array([1.0, 3.0, 8.0])
    there, back = (
        layer_norm(
            Setting(choices=choices, parameters={"gain": sign * np.array([1.0, -2.0, 0.5])}), x
        )
        for sign in (1.0, -1.0)
    )
    assert (there == -back).all()
    assert there.tolist()[0] < 0 < there.tolist()[1]
