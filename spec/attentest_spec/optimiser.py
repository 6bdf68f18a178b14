"""Adam and the clipping of gradients, from their definitions (section 5.3; Kingma and Ba 2015)."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Annotated

import numpy as np

from attentest_spec.choices import Choices
from attentest_spec.setting import Array, Floats, Mask, Setting

WEIGHT, BIAS, NORM = range(3)
"""The kinds of arrays: weights with two axes or more, biases, and gains and biases of norms."""


@dataclass(frozen=True)
class Moments:
    """The running means of gradients and of their squares, each (N), after `step` updates."""

    step: int
    mean: Annotated[Array, "N"]
    square: Annotated[Array, "N"]

    @classmethod
    def begin(cls, parameters: Annotated[Array, "N"]) -> "Moments":
        """Return the means before the first update of parameters (N): zero."""
        return cls(0, np.zeros_like(parameters), np.zeros_like(parameters))


def optimiser(
    given: Setting,
    parameters: Annotated[Floats, "N"],
    gradients: Annotated[Floats, "T N"],
    rates: Annotated[Floats, "T"],
) -> Annotated[Floats, "T N"]:
    """Return the parameters after each of the updates, which start at step 1 with no state.

    Parameters (N), gradients (T, N) and rates (T) give (T, N). Source: section 5.3.
    """
    values, moments, found = parameters, Moments.begin(parameters), []
    for gradient, rate in zip(gradients, rates, strict=True):
        values, moments = update(given, values, moments, gradient, float(rate))
        found.append(values)
    return np.array(found).reshape(gradients.shape)


def grouped_optimiser(
    given: Setting,
    parameters: Annotated[Floats, "N"],
    gradients: Annotated[Floats, "T N"],
    rates: Annotated[Floats, "T"],
    groups: Annotated[Array, "G"],
    kinds: Annotated[Array, "G"],
    present: Annotated[Mask, "T G"],
    saved: int,
) -> Annotated[Floats, "T N"]:
    """Return the parameters of several arrays after each update.

    `groups` (G) are the numbers of parameters of each array, `kinds` (G) what they are, and
    `present` (T, G) says which of them have a gradient in an update. The state is saved and
    restored after `saved` updates, which changes nothing. Parameters (N), gradients (T, N) and
    rates (T) give (T, N). Choices: `decay_groups`, `update_count`. Source: section 5.3.
    """
    ends = np.cumsum(groups)
    arrays = [slice(end - size, end) for end, size in zip(ends, groups, strict=True)]
    found = np.tile(parameters, (len(rates), 1))
    for array, kind, there in zip(arrays, kinds, present.T, strict=True):
        updates = np.flatnonzero(there)
        own = given.choices.update_count == "own"
        setting = given if _decays(given, int(kind)) else _without_decay(given)
        values, moments = parameters[array], Moments.begin(parameters[array])
        for number in updates:
            moments = moments if own else replace(moments, step=int(number))
            values, moments = update(
                setting, values, moments, gradients[number, array], float(rates[number])
            )
            found[number:, array] = values
    return found


def _decays(given: Setting, kind: int) -> bool:
    return kind == WEIGHT or given.choices.decay_groups == "all"


def _without_decay(given: Setting) -> Setting:
    return replace(given, choices=given.choices.but(weight_decay="none"))


def update(
    given: Setting,
    values: Annotated[Array, "N"],
    moments: Moments,
    gradient: Annotated[Array, "N"],
    rate: float,
) -> tuple[Annotated[Array, "N"], Moments]:
    """Return the parameters (N) and the means after one update, in the precision of `values`.

    Choices: `adam_beta1`, `adam_beta2`, `weight_decay`, and those of :func:`direction`.
    """
    choices, decay = given.choices, given.sizes.weight_decay
    beta1, beta2 = float(choices.adam_beta1), float(choices.adam_beta2)
    if choices.weight_decay == "coupled":
        gradient = gradient + decay * values
    if choices.weight_decay == "decoupled":
        values = values - rate * decay * values
    mean = beta1 * moments.mean + (1 - beta1) * gradient
    square = beta2 * moments.square + (1 - beta2) * gradient**2
    step = moments.step + 1
    after = Moments(step, mean, square)
    values = values - rate * direction(choices, step, mean, square)
    if choices.weight_decay == "decoupled-after":
        values = values - rate * decay * values
    return values, after


def direction(
    choices: Choices,
    step: int,
    mean: Annotated[Array, "N"],
    square: Annotated[Array, "N"],
) -> Annotated[Array, "N"]:
    """Return the update of one step at a rate of 1, from the two means (N), as (N)."""
    epsilon = float(choices.adam_epsilon)
    first = second = 1.0
    if choices.bias_correction == "present":
        first, second = (1 - float(one) ** step for one in (choices.adam_beta1, choices.adam_beta2))
    match choices.adam_epsilon_place:
        case "inside-root":
            divisor = np.sqrt(square / second + epsilon)
        case "uncorrected":
            divisor = (np.sqrt(square) + epsilon) / sqrt(second)
        case _:
            divisor = np.sqrt(square / second) + epsilon
    still = (divisor == 0) & (mean == 0)  # a gradient of zero without an epsilon moves nothing
    found: Array = np.where(still, 0.0, mean / first / np.where(still, 1.0, divisor))
    return found


def gradient_clipping(
    given: Setting,
    gradients: Annotated[Floats, "N"],
    groups: Annotated[Array, "G"],
    limit: Annotated[Floats, ""],
) -> Annotated[Floats, "N"]:
    """Return the gradients (N), shortened to `limit` () where their norm over all groups is larger.

    `groups` (G) are the numbers of gradients of each array, one after the other. The norm is that
    of all arrays together.
    """
    norm = float(np.sqrt((gradients**2).sum()))
    added = given.choices.clip_epsilon
    length = norm + (added if isinstance(added, float) else 0.0)
    return gradients * min(1.0, float(limit) / length) if length > 0 else gradients.copy()
