"""Multi-head attention, from the formulas (section 3.2.2)."""

from typing import Annotated, Any

import numpy as np

from attentest_spec.attention import attention
from attentest_spec.linear import linear
from attentest_spec.parameters import key_heads
from attentest_spec.setting import Floats, Mask, Setting, reported


@reported
def multi_head_attention(
    given: Setting,
    query: Annotated[Floats, "B Q D"],
    key: Annotated[Floats, "B K D"],
    value: Annotated[Floats, "B K D"],
    mask: Annotated[Mask, "#B #H #Q #K"] | None = None,
) -> Annotated[Floats, "B Q D"]:
    """Compute Concat(head_1, .., head_h) W^O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    Query (B, Q, D), key and value (B, K, D), mask broadcastable to (B, H, Q, K), True = may be
    attended; returns (B, Q, D). Raises ValueError where the choice `head_width` is "d/h" and the
    number of heads does not divide D. Where the choice `key_heads` is "fewer", G heads of keys and
    values serve H / G query heads each; where `attention_causality` is "built-in", later keys are
    hidden as well, and ValueError is raised for numbers of queries and keys that differ.
    Source: section 3.2.2; Ainslie et al. 2023 (arXiv 2305.13245), section 2.2.
    """
    heads, shared = given.sizes.heads, key_heads(given.sizes, given.choices)
    _check_width(given, heads, shared)
    context, _ = attention(
        given,
        split(linear(given, "query", query), heads),
        repeat(split(linear(given, "key", key), shared), heads // shared),
        repeat(split(linear(given, "value", value), shared), heads // shared),
        _with_causality(given, mask, query.shape[1], key.shape[1]),
    )
    return linear(given, "output", merge(context))


def split(x: Annotated[Floats, "B L C"], heads: int) -> Annotated[Floats, "B H L C//H"]:
    """Return the heads of x: head number i has the i-th slice of the columns.

    x (B, L, C) gives (B, H, L, C // H).
    """
    batch, length, columns = x.shape
    return x.reshape(batch, length, heads, columns // heads).swapaxes(1, 2)


def repeat(x: Annotated[Floats, "B G L E"], times: int) -> Annotated[Floats, "B H L E"]:
    """Return x (B, G, L, E) with every head `times` times in a row, as (B, H, L, E)."""
    return x if times == 1 else np.repeat(x, times, axis=1)


def merge(x: Annotated[Floats, "B H L E"]) -> Annotated[Floats, "B L H*E"]:
    """Return the heads of x (B, H, L, E) side by side, as (B, L, H * E)."""
    batch, heads, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, heads * width)


def _with_causality(given: Setting, mask: Any, queries: int, keys: int) -> Any:
    """Return the mask, without later keys where those are hidden by the attention itself."""
    if given.choices.attention_causality == "by-mask":
        return mask
    if queries != keys:
        raise ValueError(f"Built-in causality has no formula for {queries} queries, {keys} keys.")
    earlier = np.tril(np.ones((1, 1, queries, keys), dtype=bool))
    return earlier if mask is None else mask & earlier


def _check_width(given: Setting, heads: int, shared: int) -> None:
    width = given.sizes.d_model
    if heads < 1 or (given.choices.head_width == "d/h" and width % heads):
        raise ValueError(f"A model width of {width} cannot be divided among {heads} heads.")
    if shared < 1 or heads % shared:
        raise ValueError(f"{heads} query heads cannot share {shared} heads of keys and values.")
