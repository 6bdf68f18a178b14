"""The formulas of the feed-forward network and of residual connections."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest.analysis.lines.formulas.layer_norm import layer_norm
from attentest.analysis.lines.formulas.linear import linear
from attentest_spec.feed_forward import activate
from attentest_spec.setting import Array

_ACTIVATIONS: dict[str, Callable[[Array], Any]] = {
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "abs": np.abs,
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "square": np.square,
    "squared relu": lambda x: np.square(np.maximum(x, 0)),
}


def feed_forward(formula: Formula, part: str, x: Step) -> Step:
    """Add act(x W1 + b1) W2 + b2."""
    prefix = f"{part}." if part else ""
    chosen = formula.choices.activation
    inner = linear(formula, f"{prefix}inner", x, "F", "inner layer")
    known = ("relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu")
    others: dict[str, Callable[[Array], Any]] = {
        name: partial(activate, name) for name in known if name != chosen
    }
    activated = formula.step(
        part,
        "activated",
        partial(activate, chosen),
        inner,
        text=f"{chosen}(x W1 + b1)",
        axes=inner.axes,
        mistakes=[
            Mistake(f"{name}(x W1 + b1)", function)
            for name, function in [*others.items(), *_ACTIVATIONS.items()]
        ],
    )
    return linear(formula, f"{prefix}outer", activated, x.axes[-1], "outer layer")


def residual_sum(
    formula: Formula, part: str, name: str, x: Step, branch: Step, normed: Step | None
) -> Step:
    """Add x + sublayer(..) as `name`; `normed` is the normalised x where the norm comes first."""
    mistakes = [
        Mistake("the sublayer's output without the residual input", lambda x, b, *n: b),
        Mistake("the residual input without the sublayer's output", lambda x, b, *n: x),
        Mistake("residual input - sublayer", lambda x, b, *n: x - b),
        Mistake("sublayer - residual input", lambda x, b, *n: b - x),
        Mistake("residual input * sublayer", lambda x, b, *n: x * b),
        Mistake("twice the sublayer's output", lambda x, b, *n: 2 * b),
        Mistake("residual input + twice the sublayer's output", lambda x, b, *n: x + 2 * b),
        Mistake("twice the residual input + sublayer", lambda x, b, *n: 2 * x + b),
        Mistake("half of the sum", lambda x, b, *n: (x + b) / 2),
        Mistake("the sum / sqrt(2)", lambda x, b, *n: (x + b) / np.sqrt(2)),
    ]
    if normed is not None:
        kept = normed.value
        mistakes.append(Mistake("the normalised input + sublayer", lambda x, b: kept + b))
    return formula.step(
        part,
        name,
        lambda x, branch: x + branch,
        x,
        branch,
        text="residual input + sublayer",
        axes=x.axes,
        mistakes=mistakes,
    )


def wrapped(
    formula: Formula, norm: str, x: Step, sublayer: Callable[[Step], Step], part: str
) -> Step:
    """Add a residual connection and its norm around `sublayer`."""
    name = f"{norm.rpartition('.')[2].removesuffix('norm')} residual sum".replace("_ ", " ").strip()
    if formula.choices.norm_placement == "pre":
        normed = layer_norm(formula, norm, x)
        return residual_sum(formula, part, name, x, sublayer(normed), normed)
    return layer_norm(formula, norm, residual_sum(formula, part, name, x, sublayer(x), None))
