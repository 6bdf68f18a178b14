"""The masks, from their definitions (section 3.2.3); True = may be attended."""

from typing import Annotated

import numpy as np

from attentest_spec.setting import Mask, Setting, Tokens


def padding_mask(
    given: Setting, tokens: Annotated[Tokens, "B S"], pad: int
) -> Annotated[Mask, "B 1 1 S"]:
    """Keep every key that is a real token.

    Tokens (B, S) give (B, 1, 1, S), to be broadcast over heads and queries.
    """
    keep: Mask = tokens != pad
    return keep[:, None, None, :]


def causal_mask(given: Setting, length: int) -> Annotated[Mask, "1 1 T T"]:
    """Keep, for every query, the keys up to and including its own position.

    A length of T gives (1, 1, T, T), queries before keys. Source: section 3.2.3.
    """
    position = np.arange(length)
    return (position[:, None] >= position[None, :])[None, None]


def target_mask(
    given: Setting, tokens: Annotated[Tokens, "B T"], pad: int
) -> Annotated[Mask, "B 1 T T"]:
    """Keep the keys that are real tokens and not after their query.

    Tokens (B, T) give (B, 1, T, T). A padding query keeps its row. Source: section 3.2.3.
    """
    keep: Mask = padding_mask(given, tokens, pad) & causal_mask(given, tokens.shape[1])
    return keep
