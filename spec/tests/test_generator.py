"""The generator oracle against values by hand, far logits, and torch's functions."""

import numpy as np
import pytest
from reference import setting, tensor
from torch.nn import functional

from attentest_spec.choices import PAPER
from attentest_spec.generator import generator
from attentest_spec.setting import Floats, Setting

OUTPUTS = pytest.mark.parametrize("output", ["probabilities", "log-probabilities", "logits"])


def by_hand(output: str) -> Setting:
    """Give the chapter's two tokens, whose logits are x and the logarithm of three."""
    return Setting(
        choices=PAPER.but(output=output),
        parameters={"weight": np.array([[1.0], [0.0]]), "bias": np.array([0.0, np.log(3.0)])},
    )


def of_torch(output: str, logits: Floats) -> Floats:
    """Apply torch's softmax or its logarithm."""
    if output == "logits":
        return logits
    function = functional.softmax if output == "probabilities" else functional.log_softmax
    values: Floats = function(tensor(logits), dim=-1).numpy()
    return values


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("probabilities", [0.25, 0.75]),
        ("log-probabilities", [-np.log(4.0), np.log(0.75)]),
        ("logits", [0.0, np.log(3.0)]),
    ],
)
def test_worked_values_of_the_chapter(output: str, expected: list[float]) -> None:
    found = generator(by_hand(output), np.zeros((1, 1, 1)))
    np.testing.assert_allclose(found, [[expected]], rtol=1e-15)


def test_without_a_bias_every_token_is_as_likely_at_zero() -> None:
    bare = Setting(
        choices=PAPER.but(generator_bias="none"), parameters={"weight": by_hand("logits")["weight"]}
    )
    assert generator(bare, np.zeros((1, 1, 1))).tolist() == [[[0.5, 0.5]]]


@OUTPUTS
def test_equals_torch(rng: np.random.Generator, output: str) -> None:
    given = setting("generator", rng, output=output)
    x = rng.normal(size=(2, 7, 6)) * 5.0
    logits = functional.linear(tensor(x), tensor(given["weight"]), tensor(given["bias"])).numpy()
    found = generator(given, x)
    assert found.shape == (2, 7, 13)
    np.testing.assert_allclose(found, of_torch(output, logits), rtol=0, atol=1e-12)


@OUTPUTS
@pytest.mark.parametrize("size", [-1e6, 1e6])
def test_far_logits_stay_finite(output: str, size: float) -> None:
    found = generator(by_hand(output), np.array([[[size]]]))
    np.testing.assert_allclose(
        found, of_torch(output, np.array([[[size, np.log(3.0)]]])), rtol=1e-14
    )
    assert np.isfinite(found).all()


def test_a_row_without_any_difference_is_uniform(rng: np.random.Generator) -> None:
    given = Setting(parameters={"weight": np.zeros((13, 6)), "bias": np.full(13, 7.0)})
    found = generator(given, rng.normal(size=(2, 3, 6)))
    np.testing.assert_allclose(found, np.full((2, 3, 13), 1 / 13), rtol=1e-15)


@pytest.mark.parametrize("output", ["probabilities", "log-probabilities"])
def test_a_row_is_untouched_by_rows_far_from_it(output: str) -> None:
    x = np.array([[[0.0], [1e6]]])
    found = generator(by_hand(output), x)
    np.testing.assert_allclose(found[0, 0], generator(by_hand(output), x[:, :1])[0, 0], rtol=1e-15)
    assert np.isfinite(found).all()


def test_the_input_is_scaled_and_the_bias_is_not(rng: np.random.Generator) -> None:
    given = setting("generator", rng, output="logits", logit_scale="inverse-sqrt-d")
    x = rng.normal(size=(2, 3, 6))
    expected = x @ given["weight"].T / np.sqrt(6.0) + given["bias"]
    np.testing.assert_allclose(generator(given, x), expected, rtol=0, atol=1e-14)
