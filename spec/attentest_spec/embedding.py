"""The token embedding, from its definition (section 3.4)."""

from typing import Annotated

import numpy as np

from attentest_spec.setting import Floats, Setting, Tokens, reported


@reported
def embedding(given: Setting, tokens: Annotated[Tokens, "B L"]) -> Annotated[Floats, "B L D"]:
    """Return the table's row of every token, times sqrt(D) where the choice says so.

    Tokens (B, L) give (B, L, D), without positions. Raises IndexError for an id below 0 or from
    the size of the vocabulary on, which NumPy alone would count from the end. Source: section 3.4.
    """
    rows = given["weight"]
    _check_ids(tokens, vocabulary=len(rows))
    factor = np.sqrt(rows.shape[-1]) if given.choices.embedding_scale == "sqrt-d" else 1.0
    scaled: Floats = rows[tokens] * factor
    return scaled


def _check_ids(tokens: Tokens, *, vocabulary: int) -> None:
    foreign = tokens[(tokens < 0) | (tokens >= vocabulary)]
    if foreign.size:
        raise IndexError(f"The token id {foreign[0]} is not in the vocabulary of {vocabulary} ids.")
