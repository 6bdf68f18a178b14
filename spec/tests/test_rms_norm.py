"""The RMS norm oracle against values by hand, laws, and torch's function."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from attentest_spec.choices import PAPER, Value
from attentest_spec.parameters import draw, shapes
from attentest_spec.rms_norm import rms_norm
from attentest_spec.setting import Floats, Setting
from attentest_spec.sizes import Sizes

PLACES = ("inside-root", "added-to-rms", "floor-of-length", "floor-of-rms")


def setting(weight: Floats, **choices: Value) -> Setting:
    """Return a norm with this weight (D,)."""
    return Setting(Sizes(d_model=len(weight)), PAPER.but(**choices), {"gain": weight})


def test_worked_values_of_the_chapter() -> None:
    ones, row = np.ones(2), np.array([3.0, 4.0])
    assert rms_norm(setting(ones, rms_epsilon=3.5), row).tolist() == [0.75, 1.0]
    added = setting(ones, rms_epsilon=5.0, rms_epsilon_place="added-to-rms")
    np.testing.assert_allclose(rms_norm(added, np.array([1.0, 7.0])), [0.1, 0.7], rtol=1e-15)
    floor = setting(ones, rms_epsilon=10.0, rms_epsilon_place="floor-of-length")
    np.testing.assert_allclose(rms_norm(floor, row), np.sqrt(2) * row / 10, rtol=1e-15)
    least = setting(ones, rms_epsilon=10.0, rms_epsilon_place="floor-of-rms")
    np.testing.assert_allclose(rms_norm(least, row), row / 10, rtol=1e-15)
    weight = np.array([2.0, -1.0])
    assert rms_norm(setting(weight, rms_epsilon=3.5), row).tolist() == [1.5, -1.0]
    offset = setting(weight, rms_epsilon=3.5, rms_weight="one-plus-weight")
    assert rms_norm(offset, row).tolist() == [2.25, 0.0]


def test_a_norm_without_a_weight_has_no_parameters() -> None:
    choices = PAPER.but(rms_weight="none", rms_epsilon=3.5)
    assert shapes("rms_norm", Sizes(d_model=2), choices) == {}
    bare = Setting(Sizes(d_model=2), choices)
    assert rms_norm(bare, np.array([3.0, 4.0])).tolist() == [0.75, 1.0]


def test_a_bias_is_added_last() -> None:
    choices = PAPER.but(rms_bias="present", rms_epsilon=3.5)
    assert shapes("rms_norm", Sizes(d_model=2), choices) == {"gain": (2,), "bias": (2,)}
    held = {"gain": np.array([2.0, 1.0]), "bias": np.array([10.0, 20.0])}
    given = Setting(Sizes(d_model=2), choices, held)
    assert rms_norm(given, np.array([3.0, 4.0])).tolist() == [11.5, 21.0]


@pytest.mark.parametrize("epsilon", [1e-8, 1e-5, 0.5])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_equals_torch(rng: np.random.Generator, epsilon: float, scale: float) -> None:
    given = setting(rng.normal(size=7), rms_epsilon=epsilon)
    x = scale * rng.normal(size=(2, 5, 7))
    weight = torch.from_numpy(given["gain"])
    expected = functional.rms_norm(torch.from_numpy(x), (7,), weight, epsilon).numpy()
    np.testing.assert_allclose(rms_norm(given, x), expected, atol=1e-12)


def test_the_floor_equals_torch_normalize(rng: np.random.Generator) -> None:
    given = setting(rng.normal(size=5), rms_epsilon=2.0, rms_epsilon_place="floor-of-length")
    x = rng.normal(size=(3, 4, 5)) * np.array([0.1, 1.0, 10.0])[:, None, None]
    normal = functional.normalize(torch.from_numpy(x), dim=-1, eps=2.0).numpy()
    np.testing.assert_allclose(rms_norm(given, x), normal * 5**0.5 * given["gain"], atol=1e-14)


@pytest.mark.parametrize("place", PLACES)
def test_scales_leave_the_output_unchanged(rng: np.random.Generator, place: str) -> None:
    given = setting(rng.normal(size=6), rms_epsilon=0.0, rms_epsilon_place=place)
    x = rng.normal(size=(2, 6))
    np.testing.assert_allclose(rms_norm(given, 1e4 * x), rms_norm(given, x), rtol=1e-13)
    np.testing.assert_allclose(rms_norm(given, -x), -rms_norm(given, x), rtol=1e-13)


def test_the_mean_is_not_subtracted() -> None:
    given = setting(np.array([2.0, -3.0]), rms_epsilon=0.0)
    assert rms_norm(given, np.array([[7.0, 7.0], [-7.0, -7.0]])).tolist() == [[2, -3], [-2, 3]]


@pytest.mark.parametrize("place", PLACES)
def test_a_row_of_zeros(place: str) -> None:
    zeros, ones = np.zeros((1, 3)), np.ones(3)
    assert not rms_norm(setting(ones, rms_epsilon_place=place), zeros).any()
    without = setting(ones, rms_epsilon_place=place, rms_epsilon=0.0)
    assert np.isnan(rms_norm(without, zeros)).all()


@pytest.mark.parametrize("cast", ["before-weight", "after-weight"])
def test_single_precision_rounds_where_the_cast_is(rng: np.random.Generator, cast: str) -> None:
    choices = {"rms_arithmetic": "float32", "rms_cast": cast}
    given = setting(rng.normal(size=6), **choices)
    x = rng.normal(size=(4, 6))
    found = rms_norm(given, x)
    wide = torch.from_numpy(x).float()
    rows = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
    weight = torch.from_numpy(given["gain"])
    after = (rows * weight.float()).double() if cast == "after-weight" else rows.double() * weight
    np.testing.assert_allclose(found, after.numpy(), rtol=3e-7)
    exact = rms_norm(setting(given["gain"]), x)
    assert 1e-9 < np.abs(found - exact).max() < 1e-6
    single = found.astype(np.float32).astype(np.float64) == found
    assert single.all() == (cast == "after-weight")


def test_drawn_weights_lie_around_one(rng: np.random.Generator) -> None:
    sizes = Sizes(d_model=400)
    assert abs(draw("rms_norm", sizes, PAPER, rng)["gain"].mean() - 1.0) < 0.2
