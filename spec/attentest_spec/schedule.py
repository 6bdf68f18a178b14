"""The schedule of the learning rate, from its definition (section 5.3); steps count from 1."""

from math import cos, pi
from typing import Annotated

import numpy as np

from attentest_spec.setting import Floats, Setting


def learning_rate(given: Setting, step: int) -> Annotated[Floats, ""]:
    """Return the learning rate of the update number `step`, counted from 1.

    A whole number gives an array of shape (). Source: section 5.3, equation 3.
    """
    counted = step if given.choices.first_step == "one" else step - 1
    return np.array(peak(given) * share(given, counted))


def peak(given: Setting) -> float:
    """Return the rate of the warm-up step, the largest of all.

    Raises ValueError for a warm-up without steps: a power of it has no real value.
    """
    sizes = given.sizes
    if sizes.warmup < 1:
        raise ValueError(f"The warm-up is {sizes.warmup}; it must be at least 1.")
    if given.choices.schedule == "noam":
        return float(sizes.factor * sizes.d_model**-0.5 * sizes.warmup**-0.5)
    return float(sizes.factor)


def share(given: Setting, step: int) -> float:
    """Return the rate of `step` as a share of the peak."""
    warmup, last = given.sizes.warmup, given.sizes.total_steps
    if step < warmup:
        return step / warmup
    match given.choices.schedule:
        case "linear":
            return max(0, last - step) / (last - warmup)
        case "cosine":
            progress = min(1.0, (step - warmup) / (last - warmup))
            return 0.5 + 0.5 * cos(pi * progress)
        case "constant":
            return 1.0
        case _:
            return float((warmup / step) ** 0.5)
