"""The formulas of the feed-forward network and of residual connections."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest.analysis.lines.formulas.linear import linear
from attentest.analysis.lines.formulas.norm import norm
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
}


def feed_forward(formula: Formula, part: str, x: Step) -> Step:
    """Add act(x W1 + b1) W2 + b2, or (act(x W_g + b_g) * (x W1 + b1)) W2 + b2 where it is gated."""
    prefix = f"{part}." if part else ""
    inner = linear(formula, f"{prefix}inner", x, "F", "inner layer")
    if formula.choices.feed_forward_gate == "none":
        hidden = _activated(formula, part, inner, "x W1 + b1")
    else:
        gate = linear(formula, f"{prefix}gate", x, "F", "gate")
        hidden = _gated(formula, part, gate, _activated(formula, part, gate, "x W_g + b_g"), inner)
    return linear(formula, f"{prefix}outer", hidden, x.axes[-1], "outer layer")


def _others(chosen: str) -> dict[str, Callable[[Array], Any]]:
    """Return the options of the activation that were not chosen."""
    known = ("relu", "gelu", "gelu-tanh", "gelu-sigmoid", "silu", "sigmoid", "relu-squared")
    return {name: partial(activate, name) for name in known if name != chosen}


def _activated(formula: Formula, part: str, x: Step, words: str) -> Step:
    chosen = formula.choices.activation
    return formula.step(
        part,
        "activated",
        partial(activate, chosen),
        x,
        text=f"{chosen}({words})",
        axes=x.axes,
        mistakes=[
            Mistake(f"{name}({words})", function)
            for name, function in {**_others(chosen), **_ACTIVATIONS}.items()
            if name != chosen
        ],
    )


def _gated(formula: Formula, part: str, gate: Step, activated: Step, inner: Step) -> Step:
    """Add the product of the activated gate and the inner layer."""
    act = partial(activate, formula.choices.activation)
    return formula.step(
        part,
        "gated",
        lambda activated, inner: activated * inner,
        activated,
        inner,
        text="act(x W_g + b_g) * (x W1 + b1)",
        axes=inner.axes,
        mistakes=[
            Mistake("(x W_g + b_g) * act(x W1 + b1)", lambda a, i: gate.value * act(i)),
            Mistake("act(x W_g + b_g) * act(x W1 + b1)", lambda a, i: a * act(i)),
            Mistake("act of the product of both maps", lambda a, i: act(gate.value * i)),
            Mistake("act(x W_g + b_g) + (x W1 + b1)", lambda a, i: a + i),
            Mistake("act(x W_g + b_g) - (x W1 + b1)", lambda a, i: a - i),
            Mistake("(x W_g + b_g) * (x W1 + b1), not activated", lambda a, i: gate.value * i),
            Mistake("act(x W_g + b_g) alone", lambda a, i: a),
            Mistake("x W1 + b1 alone", lambda a, i: i),
            Mistake("act(x W1 + b1) alone", lambda a, i: act(i)),
            Mistake("act(x W1 + b1) * (x W1 + b1)", lambda a, i: act(i) * i),
            Mistake("act(x W_g + b_g) * (x W_g + b_g)", lambda a, i: a * gate.value),
            *(  # numbers without the gate do not show the activation of their author
                Mistake(f"{name}(x W1 + b1) alone", lambda a, i, other=other: other(i))
                for name, other in _others(formula.choices.activation).items()
            ),
        ],
    )


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
    formula: Formula, own: str, x: Step, sublayer: Callable[[Step], Step], part: str
) -> Step:
    """Add a residual connection and the norm `own` around `sublayer`."""
    name = f"{own.rpartition('.')[2].removesuffix('norm')} residual sum".replace("_ ", " ").strip()
    if formula.choices.norm_placement == "pre":
        normed = norm(formula, own, x)
        return residual_sum(formula, part, name, x, sublayer(normed), normed)
    return norm(formula, own, residual_sum(formula, part, name, x, sublayer(x), None))
