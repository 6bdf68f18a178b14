"""The position-wise feed-forward network, from the formulas (section 3.3)."""

import math
from collections.abc import Callable, Mapping
from typing import Annotated

import numpy as np

from attentest_spec.linear import linear
from attentest_spec.setting import Floats, Setting, reported

_erfc = np.vectorize(math.erfc, otypes=[np.float64])


@reported
def feed_forward(given: Setting, x: Annotated[Floats, "*rows D"]) -> Annotated[Floats, "*rows D"]:
    """Compute act(x W1 + b1) W2 + b2, where act is the choice `activation`.

    x (.., D) gives (.., D); the layer between, `inner`, is F wide. Without biases where the
    choice `feed_forward_bias` says so. Where `feed_forward_gate` is gated, the activation is that
    of another map, and multiplies: (act(x W_g + b_g) * (x W1 + b1)) W2 + b2. Source: section 3.3,
    equation 2; Shazeer 2020 (arXiv 2002.05202), section 2, for the gate.
    """
    name, inner = given.choices.activation, linear(given, "inner", x)
    if given.choices.feed_forward_gate == "none":
        return linear(given, "outer", activate(name, inner))
    return linear(given, "outer", activate(name, linear(given, "gate", x)) * inner)


def activate(name: str, x: Annotated[Floats, "*rows F"]) -> Annotated[Floats, "*rows F"]:
    """Apply the activation `name` (an option of the choice) to every number of x.

    x (.., F) gives (.., F).
    """
    return _ACTIVATIONS[name](x)


def _relu(x: Floats) -> Floats:
    return np.maximum(x, 0.0)


def _relu_squared(x: Floats) -> Floats:
    """Return max(0, x)^2. Source: So et al. 2021 (arXiv 2109.08668), section 4.2."""
    squared: Floats = np.square(np.maximum(x, 0.0))
    return squared


def _gelu(x: Floats) -> Floats:
    """Return x Phi(x); erfc(-z) is 1 + erf(z) without its cancellation at negative z."""
    result: Floats = 0.5 * x * _erfc(-x / math.sqrt(2.0))
    return result


def _gelu_by_tanh(x: Floats) -> Floats:
    """Return x (1 + tanh(z)) / 2 for the cubic z, as x sigmoid(2 z): without its cancellation.

    Source: Hendrycks and Gimpel 2016, section 2.
    """
    return x * _sigmoid(2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))


def _gelu_by_sigmoid(x: Floats) -> Floats:
    """Return x sigmoid(1.702 x). Source: Hendrycks and Gimpel 2016, section 2."""
    return x * _sigmoid(1.702 * x)


def _silu(x: Floats) -> Floats:
    return x * _sigmoid(x)


def _sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), with the smaller exponential alone, so that none overflows."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


_ACTIVATIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "relu": _relu,
    "gelu": _gelu,
    "gelu-tanh": _gelu_by_tanh,
    "gelu-sigmoid": _gelu_by_sigmoid,
    "silu": _silu,
    "sigmoid": _sigmoid,
    "relu-squared": _relu_squared,
}
