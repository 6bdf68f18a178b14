"""The mixture of experts with top-k routing (formulas: Jiang et al. 2024, arXiv 2401.04088)."""

from typing import Annotated, Any

import numpy as np

from attentest_spec.attention import softmax
from attentest_spec.feed_forward import activate, feed_forward
from attentest_spec.linear import linear
from attentest_spec.setting import Array, Floats, Setting, reported


@reported
def mixture_of_experts(
    given: Setting, x: Annotated[Floats, "*rows D"]
) -> Annotated[Floats, "*rows D"]:
    """Route every row of x to its experts, and return the weighted sum of what they return.

    x (.., D) gives (.., D). An expert is a feed-forward network under `experts.0` and so on, of
    which the size `chosen_experts` work on a row: those of the greatest scores. Choices:
    `router_scores`, `router_bias`, `routing_weights`, `routing_scale`, `routing_arithmetic` and
    `shared_expert`, and those of the feed-forward network. Source: Jiang et al. 2024, section 2.1.
    """
    scores = router_scores(given, x.reshape(-1, x.shape[-1]))
    return mixed_by(given, x, chosen_experts(given, scores))


def mixed_by(
    given: Setting, x: Annotated[Floats, "*rows D"], chosen: Annotated[Array, "R K"]
) -> Annotated[Floats, "*rows D"]:
    """Return the output for x (.., D) where the experts with the numbers `chosen` (R, K) work.

    There are R rows in x.
    """
    rows = x.reshape(-1, x.shape[-1])
    weights = routing_weights(given, router_scores(given, rows), chosen)
    mixed = np.zeros_like(rows)
    for number in np.unique(chosen):
        places, ranks = np.nonzero(chosen == number)
        expert = feed_forward(given.under(f"experts.{number}"), rows[places])
        mixed[places] += weights[places, ranks, None] * expert
    result: Floats = (mixed + _shared(given, rows)).reshape(x.shape)
    return result


def router_logits(given: Setting, rows: Annotated[Floats, "R D"]) -> Annotated[Array, "R M"]:
    """Return the logits (R, M) of all M experts for rows (R, D), as precise as is declared."""
    kind = np.float32 if given.choices.routing_arithmetic == "float32" else np.float64
    logits: Array = rows.astype(kind) @ given["router.weight"].T.astype(kind)
    if given.choices.router_bias == "in-scores":
        logits = logits + given["router.bias"].astype(kind)
    return logits


def router_scores(given: Setting, rows: Annotated[Floats, "R D"]) -> Annotated[Array, "R M"]:
    """Return the scores (R, M) of all M experts for rows (R, D), as precise as is declared.

    Source: Jiang et al. 2024, section 2.1; DeepSeek-AI 2024 (arXiv 2412.19437), equation 15, for
    the sigmoid.
    """
    logits = router_logits(given, rows)
    if given.choices.router_scores == "softmax":
        return softmax(logits)
    with np.errstate(over="ignore"):  # of the exponential, where the sigmoid is 0
        return np.asarray(1.0 / (1.0 + np.exp(-logits)))


def chosen_experts(given: Setting, scores: Annotated[Array, "R M"]) -> Annotated[Array, "R K"]:
    """Return the numbers (R, K) of the experts with the greatest scores (R, M), the greatest first.

    A bias that acts on the choice alone is added to the scores here. Of equal scores those of the
    experts with the smaller numbers are taken; other code may take others. Source: Jiang et al.
    2024, section 2.1; DeepSeek-AI 2024, section 2.1.2, for the bias.
    """
    ranked = scores
    if given.choices.router_bias == "in-choice-alone":
        ranked = scores + given["router.bias"].astype(scores.dtype)
    order: Array = np.argsort(-ranked, axis=-1, kind="stable")
    return order[:, : given.sizes.chosen_experts]


def routing_weights(
    given: Setting, scores: Annotated[Array, "R M"], chosen: Annotated[Array, "R K"]
) -> Annotated[Floats, "R K"]:
    """Return the weights (R, K) of the chosen experts, from the scores (R, M) of all.

    With sigmoids that are all 0 they have no value and are NaN. Source: Jiang et al. 2024, section
    2.1; Fedus et al. 2021 (arXiv 2101.03961), equation 2, for scores as they are.
    """
    weights: Any = np.take_along_axis(scores, chosen, axis=-1)
    if given.choices.routing_weights == "renormalised":
        with np.errstate(invalid="ignore"):
            weights = weights / weights.sum(axis=-1, keepdims=True)
    scale = given.choices.routing_scale
    factor = 1.0 if scale == "none" else float(scale)
    result: Floats = (weights * weights.dtype.type(factor)).astype(np.float64)
    return result


def _shared(given: Setting, rows: Floats) -> Floats | float:
    """Return what the shared expert adds to the rows (R, D), 0 where there is none.

    Source: Dai et al. 2024 (arXiv 2401.06066), section 3.2.
    """
    if given.choices.shared_expert == "none":
        return 0.0
    output = feed_forward(given.under("shared_expert"), rows)
    if given.choices.shared_expert == "added":
        return output
    gate: Floats = activate("sigmoid", linear(given, "shared_gate", rows))
    return gate * output
