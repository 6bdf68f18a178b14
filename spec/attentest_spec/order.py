"""The order of queries and keys: which token each query is, and which keys it sees by itself."""

from typing import Annotated

import numpy as np

from attentest_spec.choices import Choices
from attentest_spec.setting import Array, Mask, Setting


def ordered(choices: Choices) -> bool:
    """Say whether multi-head attention depends on the order of its keys, without any mask."""
    return choices.attention_rotary != "none" or _hides(choices) or choices.relative_bias != "none"


def unordered(choices: Choices) -> Choices:
    """Return `choices` for the attention to a memory, which has an order of its own."""
    names = ("attention_rotary", "attention_window", "relative_bias")
    return choices.but(attention_causality="by-mask", **dict.fromkeys(names, "none"))


def query_places(choices: Choices, queries: int, keys: int) -> Annotated[Array, "Q"]:
    """Return the number (Q) of the key that is of the same token, for each query.

    Choice: `query_alignment`. Raises ValueError for numbers of queries and keys that have no
    formula: different ones where nothing is declared, more queries than keys at the end.
    """
    if queries != keys and choices.query_alignment == "equal-numbers":
        raise ValueError(f"The order has no formula for {queries} queries, {keys} keys.")
    first = keys - queries if choices.query_alignment == "end" else 0
    if first < 0:
        raise ValueError(f"{queries} queries cannot be the last of {keys} keys.")
    return first + np.arange(queries)


def own_mask(given: Setting, queries: int, keys: int) -> Annotated[Mask, "1 1 Q K"] | None:
    """Return the keys that attention hides by itself as a mask (1, 1, Q, K), None for no key.

    Choices: `attention_causality`, `attention_window` with the size `window`, `query_alignment`.
    """
    choices = given.choices
    if not _hides(choices):
        return None
    ahead = np.arange(keys)[None, :] - query_places(choices, queries, keys)[:, None]
    keep = np.ones((queries, keys), dtype=bool)
    if choices.attention_causality == "built-in":
        keep &= ahead <= 0
    if choices.attention_window != "none":
        reach = given.sizes.window - (choices.attention_window == "with-query")
        keep &= np.abs(ahead) <= reach
    return keep[None, None]


def _hides(choices: Choices) -> bool:
    return choices.attention_causality == "built-in" or choices.attention_window != "none"
