"""The formula of RMS normalisation, and how it is got wrong."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest_spec.setting import Array

_EPSILONS = (0.0, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12, 1e-2, 0.1, 1.0)


def rms_norm(formula: Formula, part: str, x: Step) -> Step:
    """Add weight * x / sqrt(mean of squares + epsilon), with a bias where there is one."""
    prefix = f"{part}." if part else ""
    axes, row, add = x.axes, x.axes[:-1] + "1", partial(formula.step, part)
    add("square", np.square, x, text="x^2", axes=axes, optional=True)
    mean = add(
        "mean of squares",
        lambda x: np.square(x).mean(-1, keepdims=True),
        x,
        text="mean of x^2 in each row",
        axes=row,
        mistakes=list(_other_means()),
    )
    divisor = _divisor(formula, part, mean, x)
    add("1 / divisor", lambda d: 1 / d, divisor, text="1 / divisor", axes=row, optional=True)
    normalised = add(
        "normalised",
        lambda x, divisor: x / divisor,
        x,
        divisor,
        text="x / divisor",
        axes=axes,
        mistakes=[
            Mistake("x * divisor", lambda x, d: x * d),
            Mistake("(x - mean) / divisor", lambda x, d: (x - x.mean(-1, keepdims=True)) / d),
            Mistake("x / divisor^2", lambda x, d: x / d**2),
        ],
    )
    return _weighted(formula, part, prefix, normalised)


def _other_means() -> Iterator[Mistake]:
    """Yield what is computed by mistake for the mean of squares of each row."""
    yield Mistake(
        "sum of x^2, without a division by d", lambda x: np.square(x).sum(-1, keepdims=True)
    )
    yield Mistake("variance of the row, its mean subtracted", lambda x: x.var(-1, keepdims=True))
    for axes, where in ((-2, "over the positions"), ((-1, -2), "of the sample")):
        yield Mistake(
            f"mean of x^2 {where}",
            lambda x, axes=axes: np.square(x).mean(axes, keepdims=True),
        )
    yield Mistake("mean of |x|", lambda x: np.abs(x).mean(-1, keepdims=True))
    yield Mistake("largest |x|", lambda x: np.abs(x).max(-1, keepdims=True))
    yield Mistake(
        "sum of x^2 / (d - 1)",
        lambda x: np.square(x).sum(-1, keepdims=True) / (x.shape[-1] - 1),
    )


def _divisor(formula: Formula, part: str, mean: Step, x: Step) -> Step:
    """Add the number that every row is divided by."""
    choices, width = formula.choices, x.value.shape[-1]
    epsilon, place = choices.rms_epsilon, choices.rms_epsilon_place
    row = mean.axes
    # An epsilon that is not declared may be any of those in use.
    every = (epsilon,) if "rms_epsilon" in formula.declared else _EPSILONS
    formula.step(
        part,
        "mean of squares + epsilon",
        lambda m: m + epsilon,
        mean,
        text="mean of x^2 + epsilon",
        axes=row,
        optional=True,
        mistakes=[
            Mistake(
                "sum of x^2 + epsilon, without a division by d",
                lambda m, one=one: width * m + one,
            )
            for one in every
        ],
    )
    for name, scale in (("root of the mean of squares", 1.0), ("length", width**0.5)):
        formula.step(
            part,
            name,
            lambda m, scale=scale: scale * np.sqrt(m),
            mean,
            text=f"the {name}",
            axes=row,
            optional=True,
        )

    def divide_by(mean: Array, epsilon: float = epsilon, place: str = place) -> Array:
        if place == "inside-root":
            return np.sqrt(mean + epsilon)
        root: Array = np.sqrt(mean)
        least = epsilon / (np.sqrt(width) if place == "floor-of-length" else 1.0)
        return root + epsilon if place == "added-to-rms" else np.maximum(root, least)

    return formula.step(
        part,
        "divisor",
        divide_by,
        mean,
        text="sqrt(mean of x^2 + epsilon)" if place == "inside-root" else "the root of mean of x^2",
        axes=row,
        mistakes=[
            Mistake("mean of x^2 + epsilon, without the square root", lambda m: m + epsilon),
            *(
                Mistake(f"sqrt(mean of x^2 + {one:g})", partial(divide_by, epsilon=one))
                for one in _EPSILONS
                if "rms_epsilon" in formula.declared and one != epsilon
            ),
            *(
                Mistake(
                    "the length + epsilon, without a division by sqrt(d)",
                    lambda m, one=one: np.sqrt(width * m) + one,
                )
                for one in every
            ),
        ],
    )


def _weighted(formula: Formula, part: str, prefix: str, normalised: Step) -> Step:
    """Add the normalised row times its weight, plus its bias, as far as there are these."""
    axes, kind = normalised.axes, formula.choices.rms_weight
    gain, bias = (formula.parameter(f"{prefix}{name}", axes[-1]) for name in ("gain", "bias"))
    result = normalised
    if kind != "none" and gain is not None:
        one = 1.0 if kind == "one-plus-weight" else 0.0
        words = "(1 + weight)" if one else "the weight (gamma)"
        result = formula.step(
            part,
            "scaled",
            lambda x, gain: x * (gain + one),
            normalised,
            gain,
            text=f"normalised row times {words}",
            axes=axes,
            mistakes=list(_other_weights(one)),
        )
    if bias is None:
        return result
    return formula.step(
        part,
        "result",
        lambda x, bias: x + bias,
        result,
        bias,
        text="weighted row plus the bias (beta)",
        axes=axes,
        mistakes=[Mistake("minus the bias (beta)", lambda x, b: x - b)],
    )


def _other_weights(one: float) -> Iterator[Mistake]:
    other = "the weight (gamma)" if one else "(1 + weight)"
    yield Mistake(f"normalised row times {other}", lambda x, g: x * (g + 1.0 - one))
    yield Mistake("normalised row divided by the weight", lambda x, g: x / g)
    yield Mistake("normalised row plus the weight", lambda x, g: x + g)
