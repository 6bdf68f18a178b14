"""The masks, from their definitions (section 3.2.3); True = may be attended."""

import numpy as np
import numpy.typing as npt

from attentest_spec.setting import Array, Setting

Mask = npt.NDArray[np.bool_]


def padding_mask(given: Setting, tokens: Array, pad: int) -> Mask:
    """Keep every key that is a real token.

    Tokens (B, S) give (B, 1, 1, S), to be broadcast over heads and queries.
    """
    keep: Mask = tokens != pad
    return keep[:, None, None, :]


def causal_mask(given: Setting, length: int) -> Mask:
    """Keep, for every query, the keys up to and including its own position.

    The shape is (1, 1, T, T), queries before keys. Source: section 3.2.3.
    """
    position = np.arange(length)
    return (position[:, None] >= position[None, :])[None, None]


def target_mask(given: Setting, tokens: Array, pad: int) -> Mask:
    """Keep the keys that are real tokens and lie not after their query.

    Tokens (B, T) give (B, 1, T, T). A query that is a pad keeps its row. Source: section 3.2.3.
    """
    keep: Mask = padding_mask(given, tokens, pad) & causal_mask(given, tokens.shape[1])
    return keep
