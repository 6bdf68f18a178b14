"""torch, optax and SciPy agree with the loss of the spec, in float64."""

import jax
import numpy as np
import optax
import pytest
import torch
from scipy.special import logsumexp
from torch.nn import functional

from attentest_spec.choices import PAPER
from attentest_spec.loss import loss
from attentest_spec.setting import Floats, Setting, Tokens
from attentest_spec.sizes import Sizes

PAD, WORDS = 3, 11
SCALES = pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e4])
RATES = pytest.mark.parametrize("rate", [0.0, 0.1, 0.5])


def case(scale: float) -> tuple[Floats, Tokens]:
    """Return logits (B, T, V) and targets (B, T) of which some are padding."""
    rng = np.random.default_rng(11)
    target = rng.integers(0, WORDS, size=(4, 6))
    target[0, 3:] = target[2, :2] = PAD
    return rng.normal(size=(4, 6, WORDS)) * scale, target


def ours(scale: float, rate: float, normaliser: str) -> Floats:
    given = Setting(
        Sizes(target_vocabulary=WORDS, target_pad=PAD, smoothing=rate),
        PAPER.but(loss_normaliser=normaliser),
    )
    return loss(given, *case(scale))


@SCALES
@RATES
@pytest.mark.parametrize(("normaliser", "reduction"), [("tokens", "mean"), ("none", "sum")])
def test_torch_agrees(scale: float, rate: float, normaliser: str, reduction: str) -> None:
    logits, target = (torch.from_numpy(one).flatten(0, 1) for one in case(scale))
    found = functional.cross_entropy(
        logits, target, ignore_index=PAD, label_smoothing=rate, reduction=reduction
    )
    np.testing.assert_allclose(ours(scale, rate, normaliser), found.numpy(), rtol=1e-13)


@SCALES
@RATES
def test_optax_agrees(scale: float, rate: float) -> None:
    logits, target = case(scale)
    with jax.enable_x64(True):
        wanted = optax.smooth_labels(jax.nn.one_hot(target, WORDS, dtype="float64"), rate)
        losses = np.asarray(optax.softmax_cross_entropy(jax.numpy.asarray(logits), wanted))
    expected = losses[target != PAD].sum()
    np.testing.assert_allclose(ours(scale, rate, "none"), expected, rtol=1e-13)


@SCALES
def test_scipy_agrees(scale: float) -> None:
    logits, target = case(scale)
    own = np.take_along_axis(logits, target[..., None], axis=-1)[..., 0]
    expected = (logsumexp(logits, axis=-1) - own)[target != PAD].mean()
    np.testing.assert_allclose(ours(scale, 0.0, "tokens"), expected, rtol=1e-13)
