"""Layer normalisation (section 3.1 names it; formula: Ba et al. 2016, arXiv 1607.06450)."""

from typing import Annotated

import numpy as np

from attentest_spec.setting import Floats, Setting, reported


@reported
def layer_norm(given: Setting, x: Annotated[Floats, "*rows D"]) -> Annotated[Floats, "*rows D"]:
    """Normalise every row of x, then multiply by `gain` and add `bias` where there is one.

    x (.., D) gives (.., D). Choices: `norm_epsilon_place`, `norm_variance`, `norm_epsilon`,
    `norm_bias`. With an epsilon of 0 a constant row has no value and gives NaN. Raises ValueError
    for the unbiased variance of a row of width 1. Source: Ba et al. 2016, section 3, equations 3
    and 4.
    """
    deviations = _centred(x)
    with np.errstate(invalid="ignore"):  # 0 / 0, the constant row without epsilon
        normalised = deviations / _divisor(given, deviations)
    scaled: Floats = given["gain"] * normalised
    bias = given.get("bias")
    return scaled if bias is None else scaled + bias


def _centred(x: Floats) -> Floats:
    """Return x minus the mean of its row.

    The mean is subtracted before anything is squared, and once more to remove its rounding error:
    a mean of squares minus a squared mean loses every digit of a row far from zero.
    """
    once = x - _mean(x)
    twice: Floats = once - _mean(once)
    return twice


def _mean(x: Floats) -> Floats:
    """Return the mean of every row; the method of NumPy takes twice as long for small arrays."""
    mean: Floats = x.sum(axis=-1, keepdims=True) / x.shape[-1]
    return mean


def _divisor(given: Setting, deviations: Floats) -> Floats:
    epsilon = given.choices.norm_epsilon
    variance = _variance(deviations, unbiased=given.choices.norm_variance == "unbiased")
    outside = given.choices.norm_epsilon_place == "added-to-deviation"
    divisor: Floats = np.sqrt(variance) + epsilon if outside else np.sqrt(variance + epsilon)
    return divisor


def _variance(deviations: Floats, *, unbiased: bool) -> Floats:
    width = deviations.shape[-1]
    if unbiased and width == 1:
        raise ValueError("The unbiased variance divides by n - 1, which is 0 at width 1.")
    total: Floats = np.square(deviations).sum(axis=-1, keepdims=True)
    return total / float(width - unbiased)
