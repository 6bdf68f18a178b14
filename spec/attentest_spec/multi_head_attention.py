"""Multi-head attention, from the formulas (section 3.2.2)."""

from typing import Annotated, Any

import numpy as np

from attentest_spec.attention import mix, scores
from attentest_spec.linear import linear
from attentest_spec.order import own_mask, query_places
from attentest_spec.parameters import key_heads
from attentest_spec.relative_bias import relative_bias
from attentest_spec.rms_norm import rms_norm
from attentest_spec.rotary import turned
from attentest_spec.setting import Floats, Mask, Setting, Tokens, reported

LEAST_LENGTH = 1e-12
"""A shorter head is divided by this, where heads are divided by their length."""


@reported
def multi_head_attention(
    given: Setting,
    query: Annotated[Floats, "B Q D"],
    key: Annotated[Floats, "B K D"],
    value: Annotated[Floats, "B K D"],
    mask: Annotated[Mask, "#B #H #Q #K"] | None = None,
    positions: Annotated[Tokens, "B K"] | None = None,
) -> Annotated[Floats, "B Q D"]:
    """Compute Concat(head_1, .., head_h) W^O with head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    Query (B, Q, D), key and value (B, K, D), mask broadcastable to (B, H, Q, K), True = may be
    attended; returns (B, Q, D). Raises ValueError where the choice `head_width` is "d/h" and the
    number of heads does not divide D, and where the order of the keys counts for numbers of queries
    and keys that `query_alignment` has no formula for. `positions` (B, K) are those of the keys for
    rotary positions, 0 to K - 1 where there are none; queries have those of their keys.
    Choices: `key_heads` (G heads of keys and values serve H / G query heads each),
    `query_key_norm`, `attention_rotary`, `attention_causality`, `attention_window`,
    `relative_bias`, `attention_sink` and those of attention.
    Source: section 3.2.2; Ainslie et al. 2023 (arXiv 2305.13245), section 2.2.
    """
    heads, shared = given.sizes.heads, key_heads(given.sizes, given.choices)
    _check_width(given, heads, shared)
    queries, keys = _placed(
        given,
        split(linear(given, "query", query), heads),
        split(linear(given, "key", key), shared),
        positions,
    )
    raw = scores(queries, repeat(keys, heads // shared), given.choices)
    bias = relative_bias(given, query.shape[1], key.shape[1])
    context, _ = mix(
        given,
        raw if bias is None else raw + bias,
        repeat(split(linear(given, "value", value), shared), heads // shared),
        _with_own(mask, own_mask(given, query.shape[1], key.shape[1])),
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


def _placed(
    given: Setting,
    query: Annotated[Floats, "B H Q E"],
    key: Annotated[Floats, "B G K E"],
    positions: Annotated[Tokens, "B K"] | None,
) -> tuple[Annotated[Floats, "B H Q E"], Annotated[Floats, "B G K E"]]:
    """Return queries and keys, normalised and turned as is chosen, in the order that is chosen."""
    if given.choices.query_key_norm_place == "before-rotation":
        query, key = _normalised(given, "query_norm", query), _normalised(given, "key_norm", key)
    if given.choices.attention_rotary != "none":
        query, key = _turned(given, query, key, positions)
    if given.choices.query_key_norm_place == "after-rotation":
        query, key = _normalised(given, "query_norm", query), _normalised(given, "key_norm", key)
    return query, key


def _turned(
    given: Setting,
    query: Annotated[Floats, "B H Q E"],
    key: Annotated[Floats, "B G K E"],
    positions: Annotated[Tokens, "B K"] | None,
) -> tuple[Annotated[Floats, "B H Q E"], Annotated[Floats, "B G K E"]]:
    """Turn queries and keys; of scaling that depends on the length, that of all of them counts."""
    batch, _, queries, _ = query.shape
    keys = key.shape[2]
    places = query_places(given.choices, queries, keys)
    if positions is None:
        own = np.broadcast_to(places, (batch, queries))
        others = np.broadcast_to(np.arange(keys), (batch, keys))
    elif places.max(initial=0) < keys:
        own, others = positions[:, places], positions
    else:
        raise ValueError(f"Positions of {keys} keys are no positions of {queries} queries.")
    longest = int(max(own.max(initial=0), others.max(initial=0))) + 1
    if given.displace:
        own, others = given.displace(own), given.displace(others)
    return turned(given, query, own, longest), turned(given, key, others, longest)


def _normalised(
    given: Setting, name: str, x: Annotated[Floats, "B H L E"]
) -> Annotated[Floats, "B H L E"]:
    """Return x (B, H, L, E) under the norm `name`, per head or over all heads of a token."""
    match given.choices.query_key_norm:
        case "none":
            return x
        case "per-head":
            return rms_norm(given.under(name), x)
        case "whole-projection":
            return split(rms_norm(given.under(name), merge(x)), x.shape[1])
        case _:
            length = np.sqrt(np.square(x).sum(axis=-1, keepdims=True))
            divided: Floats = x / np.maximum(length, LEAST_LENGTH)
            return divided


def _with_own(mask: Any, own: Any) -> Any:
    """Return the mask without the keys that attention hides by itself."""
    return mask if own is None else own if mask is None else mask & own


def _check_width(given: Setting, heads: int, shared: int) -> None:
    width = given.sizes.d_model
    if heads < 1 or (given.choices.head_width == "d/h" and width % heads):
        raise ValueError(f"A model width of {width} cannot be divided among {heads} heads.")
    if shared < 1 or heads % shared:
        raise ValueError(f"{heads} query heads cannot share {shared} heads of keys and values.")
