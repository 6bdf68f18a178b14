"""The formula of layer normalisation, and how it is got wrong."""

from functools import partial

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest_spec.setting import Array

_EPSILONS = (0.0, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12, 1e-2, 0.1, 1.0)


def layer_norm(formula: Formula, part: str, x: Step) -> Step:
    """Add gain * (x - mean) / sqrt(variance + epsilon) + bias."""
    prefix = f"{part}." if part else ""
    choices, axes, row = formula.choices, x.axes, x.axes[:-1] + "1"
    width = x.value.shape[-1]
    free = 1 if choices.norm_variance == "unbiased" else 0
    epsilon = choices.norm_epsilon
    outside = choices.norm_epsilon_place == "added-to-deviation"
    add = partial(formula.step, part)

    def square_mean(c: Array, free: int = free) -> Array:
        total: Array = np.square(c).sum(-1, keepdims=True) / (width - free)
        return total

    mean = add("mean", lambda x: x.mean(-1, keepdims=True), x, text="mean of each row", axes=row)
    centred = add(
        "centred",
        lambda x, mean: x - mean,
        x,
        mean,
        text="x - mean",
        axes=axes,
        mistakes=[
            Mistake("x - mean of the sample", lambda x, m: x - x.mean((-1, -2), keepdims=True)),
            Mistake("x - mean over the positions", lambda x, m: x - x.mean(-2, keepdims=True)),
            Mistake("x - mean over the samples", lambda x, m: x - x.mean(0, keepdims=True)),
        ],
    )
    other = "n - 1" if free == 0 else "n"
    variance = add(
        "variance",
        square_mean,
        centred,
        text=f"sum of squared deviations / {'n - 1' if free else 'n'}",
        axes=row,
        mistakes=[
            Mistake(f"sum of squared deviations / ({other})", lambda c: square_mean(c, 1 - free)),
            Mistake("variance of the sample", lambda c: np.square(c).mean((-1, -2), keepdims=True)),
            Mistake("variance over the positions", lambda c: c.var(-2, keepdims=True)),
            Mistake("mean of the absolute deviations", lambda c: np.abs(c).mean(-1, keepdims=True)),
        ],
    )
    add("square", np.square, x, text="x^2", axes=axes, optional=True)
    add(
        "mean of squares",
        lambda x: np.square(x).mean(-1, keepdims=True),
        x,
        text="mean of x^2",
        axes=row,
        optional=True,
    )
    add("squared deviations", np.square, centred, text="(x - mean)^2", axes=axes, optional=True)
    add(
        "sum of squared deviations",
        lambda c: np.square(c).sum(-1, keepdims=True),
        centred,
        text="sum of squared deviations",
        axes=row,
        optional=True,
    )
    add("deviation", np.sqrt, variance, text="sqrt(variance)", axes=row, optional=True)
    inside = add(
        "variance + epsilon",
        lambda v: v + epsilon,
        variance,
        text="variance + epsilon",
        axes=row,
        optional=True,
    )

    def divide_by(variance: Array, epsilon: float = epsilon, outside: bool = outside) -> Array:
        return np.sqrt(variance) + epsilon if outside else np.sqrt(variance + epsilon)

    root = ("sqrt(variance) + {0}" if outside else "sqrt(variance + {0})").format
    opposite = ("sqrt(variance + {0})" if outside else "sqrt(variance) + {0}").format
    declared = formula.declared
    number = f"{epsilon:g}" if "norm_epsilon" in declared else "epsilon"
    epsilons = _EPSILONS if "norm_epsilon" in declared else ()
    divisor = add(
        "divisor",
        divide_by,
        variance,
        text=root(number),
        axes=row,
        mistakes=[
            *(
                Mistake(opposite(number), lambda v: divide_by(v, epsilon, not outside))
                for _ in {"norm_epsilon_place"} & set(declared)
            ),
            *(
                Mistake(root(f"{one:g}"), partial(divide_by, epsilon=one))
                for one in epsilons
                if one != epsilon
            ),
            *(
                Mistake(opposite(f"{one:g}"), partial(divide_by, epsilon=one, outside=not outside))
                for one in epsilons
                if one != epsilon
            ),
            Mistake("variance + epsilon, without the square root", lambda v: v + epsilon),
        ],
    )
    inverse = add(
        "1 / divisor", lambda d: 1 / d, divisor, text="1 / divisor", axes=row, optional=True
    )
    del inside
    normalised = add(
        "normalised",
        lambda centred, divisor: centred / divisor,
        centred,
        divisor,
        text="(x - mean) / divisor",
        axes=axes,
        mistakes=[
            Mistake("(x - mean) * divisor", lambda c, d: c * d),
            Mistake("(x - mean) / (2 divisor)", lambda c, d: c / d / 2),
            Mistake("x / divisor, the mean not subtracted", lambda c, d: (c + mean.value) / d),
            Mistake("(x - mean) / variance", lambda c, d: c / (variance.value + epsilon)),
        ],
    )
    gain = formula.parameter(f"{prefix}gain", axes[-1])
    bias = formula.parameter(f"{prefix}bias", axes[-1])
    assert gain is not None
    for name, one in (("gain * (x - mean)", centred), ("gain / divisor", inverse)):
        add(name, lambda x, g: x * g, one, gain, text=name, axes=axes, optional=True)
    scaled = add(
        "scaled",
        lambda x, gain: x * gain,
        normalised,
        gain,
        text="normalised row times the weight (gamma)",
        axes=axes,
        mistakes=[
            Mistake("normalised row times (1 + weight)", lambda x, g: x * (1 + g)),
            Mistake("normalised row divided by the weight", lambda x, g: x / g),
            Mistake("normalised row plus the weight", lambda x, g: x + g),
        ],
    )
    left_out = Mistake("x, not normalised", lambda *_: x.value)
    if bias is None:
        scaled.mistakes = [*scaled.mistakes, left_out]
        return scaled
    add(
        "shift",
        lambda mean, gain, divisor, bias: bias - mean * gain / divisor,
        mean,
        gain,
        divisor,
        bias,
        text="the bias (beta) - mean * weight (gamma) / divisor",
        axes=axes,
        optional=True,
    )
    return add(
        "result",
        lambda x, bias: x + bias,
        scaled,
        bias,
        text="normalised row times the weight (gamma), plus the bias (beta)",
        axes=axes,
        mistakes=[
            Mistake("without the bias (beta)", lambda x, b: x),
            Mistake("minus the bias (beta)", lambda x, b: x - b),
            left_out,
        ],
    )
