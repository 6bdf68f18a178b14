"""Tolerances for correct computations in lower precision against the oracle.

First-order bounds, from the arithmetic: u is half the distance of 1 to the next number, a sum of n
products is off by at most n u times the sum of their sizes. Each returns one bound per number.
"""

from typing import Any

import numpy as np

from attentest_spec.setting import Array, Floats

ELEMENTARY = 4
"""Units in the last place that an exponential, a logarithm or an error function may be off by."""


def unit(dtype: np.dtype[Any]) -> float:
    """Return u of a floating `dtype`."""
    return float(np.finfo(dtype).eps) / 2


def of_products(left: Floats, right: Floats, u: float, extra: int = 0) -> Floats:
    """Return the bound of `left @ right`, with `extra` roundings after it."""
    bound: Floats = (left.shape[-1] + extra) * u * (np.abs(left) @ np.abs(right))
    return bound


def of_softmax(scores: Floats, score_bound: Floats, u: float) -> Floats:
    """Return the relative bound (.., 1) of softmax over the last axis of scores that are off.

    Each exponential is off by its own score and by the subtraction of the maximum; so is their
    sum, which rounds once per term besides. What the maximum is off by cancels.
    """
    finite = np.where(np.isfinite(scores), scores, 0.0)
    span = np.ptp(finite, axis=-1, keepdims=True)
    off = np.where(np.isfinite(scores), score_bound, 0.0).max(axis=-1, keepdims=True)
    steps = 2 * (off + u * span) + (scores.shape[-1] + 2 * ELEMENTARY + 2) * u
    bound: Floats = np.expm1(steps)
    return bound


def of_attention(
    scores: Floats, score_bound: Floats, weights: Floats, value: Floats, u: float
) -> Floats:
    """Return the bound of the output of attention, from that of its scores."""
    relative = of_softmax(scores, score_bound, u) + (value.shape[-2] + 1) * u
    bound: Floats = relative * (weights @ np.abs(value))
    return bound


def of_layer_norm(x: Floats, gain: Floats, bias: Floats, epsilon: float, u: float) -> Floats:
    """Return the bound of layer normalisation over the last axis, whatever way it is computed.

    The mean is off by n u of the mean size; the variance may be a mean of squares less a squared
    mean, and is then off by as much of the mean square.
    """
    width = x.shape[-1]
    size = np.abs(x).max(axis=-1, keepdims=True)
    deviation = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(deviation).mean(axis=-1, keepdims=True) + epsilon
    root = np.sqrt(variance)
    off = (width + 3) * u * size / root
    squares = np.square(x).mean(axis=-1, keepdims=True)
    off_root = (2 * width + 6) * u * squares / variance
    normalised = np.abs(deviation) / root
    bound: Floats = np.abs(gain) * (off + normalised * (off_root + 6 * u)) + 2 * u * np.abs(bias)
    return bound


def of_rms_norm(x: Floats, gain: Floats, epsilon: float, u: float) -> Floats:
    """Return the bound of RMS normalisation over the last axis with epsilon inside the root.

    A sum of squares has no cancellation: it is off by n u of itself at most.
    """
    width = x.shape[-1]
    root = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + epsilon)
    bound: Floats = (width + 8) * u * np.abs(gain * x / root)
    return bound


def spacing(values: Array, u: float) -> Floats:
    """Return u times the size of `values`, and the smallest normal number where that is less."""
    bound: Floats = u * np.abs(values) + float(np.finfo(np.float32).tiny)
    return bound
