"""The loss oracle against values by hand, its laws, and torch's functions."""

import warnings
from itertools import product

import numpy as np
import pytest
import torch
from reference import tensor
from torch.nn import functional

from attentest_spec.choices import CHOICES, PAPER, Choices
from attentest_spec.generator import normalised
from attentest_spec.loss import loss, loss_gradient, smoothed
from attentest_spec.setting import Floats, Setting, Tokens
from attentest_spec.sizes import Sizes

LOGITS = np.log(np.array([[[1.0, 2.0, 5.0]] * 3]))
OPTIONS = list(
    product(*(CHOICES[one].names for one in ("smoothed_mass", "loss_normaliser", "loss_measure")))
)
EACH = pytest.mark.parametrize(("mass", "number", "measure"), OPTIONS)


def setting(smoothing: float = 0.0, **choices: str) -> Setting:
    sizes = Sizes(target_vocabulary=13, target_pad=5, smoothing=smoothing)
    return Setting(sizes, PAPER.but(**choices))


def small(smoothing: float, **choices: str) -> Setting:
    return Setting(Sizes(target_vocabulary=3, smoothing=smoothing), Choices(**choices))  # type: ignore[arg-type]


def drawn(rng: np.random.Generator) -> tuple[Floats, Tokens]:
    """Draw logits (B, T, V) and targets (B, T) with padding on both sides."""
    target = rng.integers(6, 13, size=(3, 4))
    target[0, 1:] = target[1, :2] = 5
    return rng.normal(size=(3, 4, 13)) * 3.0, target


@pytest.mark.parametrize(
    ("mass", "measure", "expected"),
    [
        ("all-words", "cross-entropy", 0.7226),
        ("other-words", "cross-entropy", 0.8489),
        ("other-real-words", "cross-entropy", 0.7449),
        ("other-real-words", "divergence", 0.7449 - 0.6109),
    ],
)
def test_worked_values_of_the_chapter(mass: str, measure: str, expected: float) -> None:
    given = small(0.3, smoothed_mass=mass, loss_measure=measure)
    found = loss(given, LOGITS[:, :1], np.array([[2]]))
    np.testing.assert_allclose(found, expected, rtol=0, atol=6e-5)


@pytest.mark.parametrize(("number", "parts"), [("tokens", 2), ("sentences", 1), ("none", 1)])
def test_worked_means_of_the_chapter(number: str, parts: int) -> None:
    found = loss(small(0.0, loss_normaliser=number), LOGITS, np.array([[2, 1, 0]]))
    assert found.shape == ()
    np.testing.assert_allclose(found, np.log(32 / 5) / parts, rtol=1e-15)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize(("number", "reduction"), [("tokens", "mean"), ("none", "sum")])
def test_equals_the_cross_entropy_of_torch(
    rng: np.random.Generator, smoothing: float, number: str, reduction: str
) -> None:
    logits, target = drawn(rng)
    expected = functional.cross_entropy(
        tensor(logits.reshape(-1, 13)),
        tensor(target.reshape(-1)),
        ignore_index=5,
        label_smoothing=smoothing,
        reduction=reduction,
    )
    found = loss(setting(smoothing, loss_normaliser=number), logits, target)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-14)


@EACH
def test_equals_the_divergence_of_torch(
    rng: np.random.Generator, mass: str, number: str, measure: str
) -> None:
    logits, target = drawn(rng)
    given = setting(0.2, smoothed_mass=mass, loss_normaliser=number, loss_measure=measure)
    keep = target != 5
    wanted = tensor(smoothed(given, target, 13)[keep])
    logs = tensor(normalised("log-probabilities", logits)[keep])
    total = functional.kl_div(logs, wanted, reduction="sum")
    if measure == "cross-entropy":
        total = total - torch.xlogy(wanted, wanted).sum()
    parts = {"tokens": keep.sum(), "sentences": 3, "none": 1}[number]
    np.testing.assert_allclose(loss(given, logits, target), total.numpy() / parts, rtol=1e-13)


@EACH
def test_a_batch_is_the_sum_of_its_parts(
    rng: np.random.Generator, mass: str, number: str, measure: str
) -> None:
    logits, target = drawn(rng)
    given = setting(0.2, smoothed_mass=mass, loss_normaliser=number, loss_measure=measure)

    def weight(rows: slice) -> int:
        count = int((target[rows] != 5).sum())
        return {"tokens": count, "sentences": len(target[rows]), "none": 1}[number]

    parts = [slice(0, 1), slice(1, 3)]
    total = sum(weight(rows) * loss(given, logits[rows], target[rows]) for rows in parts)
    expected = total / weight(slice(None))
    np.testing.assert_allclose(loss(given, logits, target), expected, rtol=1e-14)


@pytest.mark.parametrize("mass", CHOICES["smoothed_mass"].names)
def test_a_smoothed_target_is_a_distribution(rng: np.random.Generator, mass: str) -> None:
    _, target = drawn(rng)
    found = smoothed(setting(0.2, smoothed_mass=mass), target, 13)[target != 5]
    np.testing.assert_allclose(found.sum(axis=-1), 1.0, rtol=1e-15)
    assert (found[:, 5] == 0).all() == (mass == "other-real-words")


def test_kinds_of_output_give_one_loss(rng: np.random.Generator) -> None:
    logits, target = drawn(rng)
    found = [
        loss(setting(0.1, loss_input=kind), normalised(kind, logits), target)
        for kind in CHOICES["loss_input"].names
    ]
    np.testing.assert_allclose(found, found[0], rtol=1e-14)


@pytest.mark.parametrize(("option", "expected"), [("zero", 0.0), ("nan", np.nan)])
def test_nothing_but_padding_gives_what_is_declared(option: str, expected: float) -> None:
    given = setting(0.1, loss_without_targets=option)
    found = loss(given, np.zeros((2, 3, 13)), np.full((2, 3), 5))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [-1e6, 1e6])
def test_far_logits_stay_finite(size: float) -> None:
    found = loss(small(0.0), np.array([[[0.0, size, -size]]]), np.array([[1]]))
    assert found == max(-2 * size, 0.0)


def test_a_word_without_a_share_has_no_term() -> None:
    given = small(0.0, loss_input="probabilities")
    found = loss(given, np.array([[[0.0, 0.5, 0.5]]]), np.array([[1]]))
    np.testing.assert_allclose(found, np.log(2.0), rtol=1e-15)


def test_negative_probability_has_no_logarithm_and_gives_no_warning() -> None:
    given = small(0.0, loss_input="probabilities")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(loss(given, np.array([[[0.5, -0.5, 1.0]]]), np.array([[1]])))


def test_output_at_padding_has_no_effect(rng: np.random.Generator) -> None:
    logits, target = drawn(rng)
    before = loss(setting(0.1), logits, target)
    logits[target == 5] = np.inf
    with np.errstate(invalid="ignore"):
        assert loss(setting(0.1), logits, target) == before


@pytest.mark.parametrize("kind", ["logits", "log-probabilities", "probabilities"])
@pytest.mark.parametrize("mass", ["all-words", "other-words", "other-real-words"])
@pytest.mark.parametrize("divisor", ["tokens", "sentences"])
def test_gradient_is_that_of_finite_differences(kind: str, mass: str, divisor: str) -> None:
    rng, nudge = np.random.default_rng(2), 1e-6
    choices = PAPER.but(loss_input=kind, smoothed_mass=mass, loss_normaliser=divisor)
    given = Setting(Sizes(smoothing=0.2), choices)
    output = normalised(kind, rng.normal(size=(2, 3, 5)))
    target = np.array([[1, 2, 0], [4, 0, 0]])
    pulled = loss_gradient(given, output, target)
    for place in np.ndindex(output.shape):
        step = np.zeros_like(output)
        step[place] = nudge
        pair = [float(loss(given, output + sign * step, target)) for sign in (1, -1)]
        assert pulled[place] == pytest.approx((pair[0] - pair[1]) / (2 * nudge), abs=1e-7)


def test_gradient_of_nothing_but_padding_is_zero() -> None:
    output = np.random.default_rng(2).normal(size=(2, 3, 5))
    pulled = loss_gradient(Setting(), output, np.zeros((2, 3), dtype=np.int64))
    assert not pulled.any()


def test_sentence_of_padding_alone_counts_among_the_sentences() -> None:
    target = np.array([[2, 1, 0], [0, 0, 0]])
    found = loss(small(0.0, loss_normaliser="sentences"), np.tile(LOGITS, (2, 1, 1)), target)
    np.testing.assert_allclose(found, np.log(32 / 5) / 2, rtol=1e-15)


def test_word_of_no_probability_and_no_share_has_no_gradient() -> None:
    given = small(0.0, loss_input="probabilities")
    pulled = loss_gradient(given, np.array([[[0.0, 0.5, 0.5]]]), np.array([[1]]))
    np.testing.assert_array_equal(pulled, [[[0.0, -2.0, 0.0]]])


def test_share_that_no_other_word_takes_is_left_out() -> None:
    sizes = Sizes(target_vocabulary=2, smoothing=0.25)
    given = Setting(sizes, Choices(smoothed_mass="other-real-words"))
    logits, target = np.zeros((1, 1, 2)), np.array([[1]])
    np.testing.assert_array_equal(smoothed(given, target, 2), [[[0.0, 0.75]]])
    np.testing.assert_allclose(loss(given, logits, target), 0.75 * np.log(2.0), rtol=1e-15)
    pulled = loss_gradient(given, logits, target)
    np.testing.assert_allclose(pulled, [[[0.375, -0.375]]], rtol=1e-15)
