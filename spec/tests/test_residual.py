"""The residual oracle against its two closed forms, values by hand, and torch's norm."""

import numpy as np
import pytest
from reference import setting, tensor
from torch.nn import functional

from attentest_spec.choices import PAPER
from attentest_spec.layer_norm import layer_norm
from attentest_spec.residual import residual, wrap
from attentest_spec.setting import Floats, Setting


def by_hand(placement: str) -> Setting:
    """Give the chapter's norm: without epsilon it takes (1, 3) to (-1, 1), then doubles it."""
    return Setting(
        choices=PAPER.but(norm_placement=placement, norm_epsilon=0.0),
        parameters={"norm.gain": np.array([2.0, 2.0]), "norm.bias": np.array([0.0, 5.0])},
    )


@pytest.mark.parametrize(("placement", "expected"), [("post", [2.0, 3.0]), ("pre", [-9.0, 3.0])])
def test_worked_values_of_the_chapter(placement: str, expected: list[float]) -> None:
    sublayer = np.array([[5.0, 0.0], [0.0, 0.0]])
    found = residual(by_hand(placement), np.array([[[1.0, 3.0]]]), sublayer)
    assert found.tolist() == [[expected]]


def test_without_a_sublayer_pre_norm_is_the_identity(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 5, 6))
    given = setting("residual", rng, norm_placement="pre")
    assert (residual(given, x, np.zeros((6, 6))) == x).all()


def test_without_a_sublayer_post_norm_is_the_norm(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 5, 6))
    given = setting("residual", rng)
    found = residual(given, x, np.zeros((6, 6)))
    assert (found == layer_norm(given.under("norm"), x)).all()


@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_equals_torch(rng: np.random.Generator, placement: str, scale: float) -> None:
    given = setting("residual", rng, norm_placement=placement)
    x, sublayer = rng.normal(size=(2, 5, 6)) * scale, rng.normal(size=(6, 6))
    found = residual(given, x, sublayer)
    np.testing.assert_allclose(found, of_torch(given, x, sublayer), rtol=1e-12, atol=1e-12)


def of_torch(given: Setting, x: Floats, sublayer: Floats) -> Floats:
    """Compute both placements with torch's functional norm."""
    norm = tensor(given["norm.gain"]), tensor(given["norm.bias"]), given.choices.norm_epsilon
    skip, matrix = tensor(x), tensor(sublayer)
    if given.choices.norm_placement == "pre":
        result = skip + functional.layer_norm(skip, (6,), *norm) @ matrix
    else:
        result = functional.layer_norm(skip + skip @ matrix, (6,), *norm)
    values: Floats = result.numpy()
    return values


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_any_function_can_be_wrapped(rng: np.random.Generator, placement: str) -> None:
    given = setting("residual", rng, norm_placement=placement)
    x, sublayer = rng.normal(size=(2, 5, 6)), rng.normal(size=(6, 6))
    found = wrap(given.under("norm"), x, lambda inner: inner @ sublayer)
    assert (found == residual(given, x, sublayer)).all()


def test_input_stays_as_it_was(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 5, 6))
    before = x.copy()
    residual(setting("residual", rng, norm_placement="pre"), x, np.eye(6))
    assert (x == before).all()


@pytest.mark.parametrize("place", ["inside-root", "added-to-deviation"])
@pytest.mark.parametrize("variance", ["biased", "unbiased"])
def test_post_norm_is_the_norm_of_the_sum_under_every_formula(
    rng: np.random.Generator, place: str, variance: str
) -> None:
    given = setting(
        "residual", rng, norm_epsilon_place=place, norm_variance=variance, norm_epsilon=0.3
    )
    x, sublayer = rng.normal(size=(2, 5, 6)), rng.normal(size=(6, 6))
    expected = layer_norm(given.under("norm"), x + x @ sublayer)
    np.testing.assert_allclose(residual(given, x, sublayer), expected, atol=1e-14)


@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("rows", [(), (5,), (2, 5), (2, 3, 5), (2, 1, 3, 5)])
def test_rows_may_have_any_shape(
    rng: np.random.Generator, rows: tuple[int, ...], placement: str
) -> None:
    given = setting("residual", rng, norm_placement=placement)
    x, sublayer = rng.normal(size=(*rows, 6)), rng.normal(size=(6, 6))
    flat = residual(given, x.reshape(-1, 6), sublayer)
    np.testing.assert_allclose(residual(given, x, sublayer).reshape(-1, 6), flat, atol=1e-13)
