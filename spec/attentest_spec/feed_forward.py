"""The position-wise feed-forward network, from the formulas (section 3.3)."""

import math
from typing import Annotated

import numpy as np

from attentest_spec.linear import linear
from attentest_spec.setting import Floats, Setting, reported

_erfc = np.vectorize(math.erfc, otypes=[np.float64])


@reported
def feed_forward(given: Setting, x: Annotated[Floats, "*rows D"]) -> Annotated[Floats, "*rows D"]:
    """Compute act(x W1 + b1) W2 + b2, where act is the choice `activation`.

    x (.., D) gives (.., D); the layer between, `inner`, is F wide. Without b1 and b2 where the
    choice `feed_forward_bias` says so. Source: section 3.3, equation 2.
    """
    return linear(given, "outer", activate(given.choices.activation, linear(given, "inner", x)))


def activate(name: str, x: Annotated[Floats, "*rows F"]) -> Annotated[Floats, "*rows F"]:
    """Apply the activation `name` (an option of the choice) to every number of x.

    x (.., F) gives (.., F).
    """
    return {"relu": _relu, "gelu": _gelu, "silu": _silu}[name](x)


def _relu(x: Floats) -> Floats:
    return np.maximum(x, 0.0)


def _gelu(x: Floats) -> Floats:
    """Return x Phi(x); erfc(-z) is 1 + erf(z) without its cancellation at negative z."""
    result: Floats = 0.5 * x * _erfc(-x / math.sqrt(2.0))
    return result


def _silu(x: Floats) -> Floats:
    """Return x sigmoid(x), with the smaller exponential alone, so that none overflows."""
    small = np.exp(-np.abs(x))
    return x * np.where(x >= 0, 1.0, small) / (1.0 + small)
