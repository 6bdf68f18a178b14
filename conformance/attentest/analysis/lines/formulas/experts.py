"""The formula of a mixture of experts: router, scores, weights, and the sum."""

from collections.abc import Callable
from functools import partial

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest_spec.attention import softmax
from attentest_spec.feed_forward import feed_forward
from attentest_spec.mixture_of_experts import chosen_experts, mixed_by, routing_weights
from attentest_spec.setting import Array


def mixture_of_experts(formula: Formula, x: Step) -> Step:
    """Add the sum of the chosen experts' outputs, each times its weight."""
    given, rows = formula.setting, x.axes[:-1]
    logits = _logits(formula, x)
    scores = _scores(formula, logits)
    flat = scores.value.reshape(-1, scores.value.shape[-1])
    chosen = chosen_experts(given, flat)
    places = chosen.reshape(*scores.value.shape[:-1], -1)
    picked = formula.step(
        "",
        "chosen scores",
        lambda scores: np.take_along_axis(scores, places, axis=-1),
        scores,
        text="the scores of the chosen experts",
        axes=f"{rows}K",
        optional=True,
    )
    weights = formula.step(
        "",
        "weights",
        lambda picked: routing_weights(given, flat, chosen).reshape(picked.shape),
        picked,
        text="the weights of the chosen experts",
        axes=f"{rows}K",
        optional=True,
        mistakes=[
            Mistake("the scores of the chosen experts, not divided by their sum", lambda p: p),
            Mistake("the scores of the chosen experts / their sum", _divided),
            Mistake("softmax of the scores of the chosen experts", softmax),
        ],
    )
    return formula.step(
        "",
        "sum",
        lambda x, scores: mixed_by(given, x, chosen),
        x,
        scores,
        text="the sum of the chosen experts' outputs times their weights",
        axes=x.axes,
        mistakes=_other_sums(formula, chosen, weights.value.reshape(chosen.shape)),
    )


def _logits(formula: Formula, x: Step) -> Step:
    weight = formula.parameter("router.weight", "MD")
    assert weight is not None
    axes = f"{x.axes[:-1]}M"
    product = formula.step(
        "router", "product", lambda x, w: x @ w.T, x, weight, text="x W^T in the router", axes=axes
    )
    bias = formula.parameter("router.bias", "M")
    if bias is None or formula.choices.router_bias != "in-scores":
        return product
    return formula.step(
        "router",
        "logits",
        lambda product, bias: product + bias,
        product,
        bias,
        text="x W^T + b in the router",
        axes=axes,
    )


def _scores(formula: Formula, logits: Step) -> Step:
    functions: dict[str, Callable[[Array], Array]] = {
        "softmax": softmax,
        "sigmoid": lambda logits: 1.0 / (1.0 + np.exp(-logits)),
    }
    chosen = formula.choices.router_scores
    others = {
        f"{name} of the router's logits": one for name, one in functions.items() if name != chosen
    }
    for axis in range(logits.value.ndim - 1):
        others[f"softmax of the router's logits over axis {axis}"] = partial(_softmax, axis=axis)
    return formula.step(
        "",
        "scores",
        functions[chosen],
        logits,
        text=f"{chosen} of the router's logits over the experts",
        axes=logits.axes,
        optional=True,  # of a softmax over the chosen logits alone there are none
        mistakes=[Mistake(text, one) for text, one in others.items()],
    )


def _softmax(logits: Array, axis: int) -> Array:
    return softmax(logits.swapaxes(axis, -1)).swapaxes(axis, -1)


def _divided(picked: Array) -> Array:
    divided: Array = picked / picked.sum(axis=-1, keepdims=True)
    return divided


def _other_sums(formula: Formula, chosen: Array, weights: Array) -> list[Mistake]:
    """Return how the sum is got wrong, for the experts (R, K) and weights (R, K) that are right."""
    given, ranks = formula.setting, chosen.shape[-1]

    def alone(rank: int, x: Array) -> Array:
        """Return the weighted output of the expert of that rank, without a shared one."""
        rows = x.reshape(-1, x.shape[-1])
        each = [feed_forward(given.under(f"experts.{e}"), rows) for e in range(given.sizes.experts)]
        picked = np.stack(each)[chosen[:, rank], np.arange(len(rows))]
        found: Array = (weights[:, rank, None] * picked).reshape(x.shape)
        return found

    others = [
        Mistake(f"the output of the expert of rank {rank + 1} alone", partial(_first, alone, rank))
        for rank in range(ranks)
    ]
    if given.choices.shared_expert != "none":
        routed = formula.choices.but(shared_expert="none")
        bare = type(given)(given.sizes, routed, formula.parameters)
        others.append(
            Mistake("the sum without the shared expert", lambda x, s: mixed_by(bare, x, chosen))
        )
    return others


def _first(alone: Callable[[int, Array], Array], rank: int, x: Array, scores: Array) -> Array:
    return alone(rank, x)
