"""Scaled dot-product attention, from the formulas (section 3.2.1)."""

from typing import Annotated, Any

import numpy as np

from attentest_spec.choices import PAPER, Choices
from attentest_spec.setting import Array, Floats, Mask, Setting


def attention(
    given: Setting,
    query: Annotated[Floats, "B H Q E"],
    key: Annotated[Floats, "B H K E"],
    value: Annotated[Floats, "B H K G"],
    mask: Annotated[Mask, "#B #H #Q #K"] | None = None,
) -> tuple[Annotated[Floats, "B H Q G"], Annotated[Floats, "B H Q K"]]:
    """Compute softmax(Q K^T / sqrt(d_k)) V.

    Query (B, H, Q, E), key (B, H, K, E), value (B, H, K, G), mask broadcastable to (B, H, Q, K),
    True = may be attended. Returns the output (B, H, Q, G) and the weights (B, H, Q, K). A row
    without any key follows the choice `fully_masked_row` (NaN where that is unspecified).
    Source: section 3.2.1, equation 1; section 3.2.3 for the mask.
    """
    return mix(given, scores(query, key, given.choices), value, mask)


def mix(
    given: Setting,
    raw: Annotated[Floats, "B H Q K"],
    value: Annotated[Floats, "B H K G"],
    mask: Annotated[Mask, "#B #H #Q #K"] | None,
) -> tuple[Annotated[Floats, "B H Q G"], Annotated[Floats, "B H Q K"]]:
    """Return the means of the values under the scores, and the weights.

    Scores (B, H, Q, K) and values (B, H, K, G) give (B, H, Q, G) and (B, H, Q, K).
    """
    weights = masked_softmax(given, raw, mask)
    output: Floats = weights @ value
    return output, weights


def scores(
    query: Annotated[Floats, "*rows Q E"],
    key: Annotated[Floats, "*rows K E"],
    choices: Choices = PAPER,
) -> Annotated[Floats, "*rows Q K"]:
    """Return the product of each query with each key, scaled and bounded as is chosen.

    Query (.., Q, E) and key (.., K, E) give (.., Q, K). Choices: `score_scale` (division by
    sqrt(E), or a factor) and `score_cap` c (c tanh(score / c)).
    """
    products: Floats = query @ key.swapaxes(-1, -2)
    paper = choices.score_scale == "inverse-sqrt-e"
    scaled: Floats = (
        products / np.sqrt(query.shape[-1]) if paper else products * float(choices.score_scale)
    )
    if choices.score_cap == "none":
        return scaled
    cap = float(choices.score_cap)
    bounded: Floats = cap * np.tanh(scaled / cap)
    return bounded


def masked_softmax(
    given: Setting,
    raw: Annotated[Floats, "B H Q K"],
    mask: Annotated[Mask, "#B #H #Q #K"] | None,
) -> Annotated[Floats, "B H Q K"]:
    """Return the weights over keys for raw scores, under the choices.

    Scores (B, H, Q, K) and a mask broadcastable to (B, H, Q, K) give weights (B, H, Q, K).
    Choices: `mask_fill` (minus infinity, or a finite score), `fully_masked_row` and
    `softmax_arithmetic`. The parameter `sink.score` (H,) of multi-head attention, where there is
    one, is a further score of each head, whose weight is left out.
    """
    if mask is None:
        return _weights(given, raw)
    keep = np.broadcast_to(mask, raw.shape)
    fill = -np.inf if given.choices.mask_fill == "exact" else float(given.choices.mask_fill)
    weights = _weights(given, np.where(keep, raw, fill))
    empty = ~keep.any(axis=-1, keepdims=True)
    return np.where(empty, _weights_of_an_empty_row(given, raw.shape[-1]), weights)


def _weights(given: Setting, raw: Floats) -> Floats:
    """Return the softmax, with the score of nothing where multi-head attention has one."""
    sink = given.get("sink.score")
    if sink is None:
        return _normalised(given, raw)
    nothing = np.broadcast_to(sink[:, None, None], (*raw.shape[:-1], 1))
    return _normalised(given, np.concatenate([raw, nothing], axis=-1))[..., :-1]


def _normalised(given: Setting, raw: Floats) -> Floats:
    """Return the softmax in float64, or in float32 of scores that are rounded to it."""
    normalise = given.normalise or softmax
    if given.choices.softmax_arithmetic == "as-computed":
        return normalise(raw)
    with np.errstate(over="ignore"):  # a score beyond the range of float32 is infinite there
        rounded: Any = raw.astype(np.float32)
    return normalise(rounded).astype(np.float64)


def softmax(raw: Annotated[Array, "*rows K"]) -> Annotated[Array, "*rows K"]:
    """Return exp(x) / sum(exp(x)) over the last axis; the maximum is subtracted first.

    Scores (.., K) give weights (.., K) in the same precision.
    """
    peak = raw.max(axis=-1, keepdims=True)
    powers = np.exp(raw - np.where(np.isfinite(peak), peak, 0.0))
    total = powers.sum(axis=-1, keepdims=True)
    weights: Floats = np.divide(powers, total, out=np.full_like(powers, np.nan), where=total > 0)
    return weights


def _weights_of_an_empty_row(given: Setting, keys: int) -> float:
    return {"uniform": 1.0 / keys, "zero": 0.0}.get(given.choices.fully_masked_row, np.nan)
