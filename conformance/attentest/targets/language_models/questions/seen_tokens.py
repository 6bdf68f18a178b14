"""Models whose mask of later tokens is inverted, and the words on them."""

from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.probing import undisturbed

INVERTED = (
    "the logits of a token depend on the tokens after it, and on none before it: its mask of later "
    "tokens is inverted, as a triangle of True is where True hides a token"
)

ALONE = (
    "the logits of a token depend on that token alone: no layer that reads those before it has an "
    "effect"
)


def wrongly_seen(model: nn.Module, function: Any, tokens: Tensor) -> str:
    """Return which tokens logits (B, T, V) depend on, where these are not the earlier ones.

    "" where they are, and where it is not known. `function` calls the `model` with `tokens` (B, T).
    """

    def moved(place: int) -> Tensor:
        other = tokens.clone()
        other[:, place] = tokens[:, place].flip(0)
        return other

    try:
        with undisturbed():
            plain, first, last = (function(model, one) for one in (tokens, moved(0), moved(-1)))
    except Exception:  # code that a user wrote may raise anything
        return ""
    if not all(isinstance(one, Tensor) and one.ndim == 3 for one in (plain, first, last)):
        return ""
    if not torch.isclose(plain[:2, 1:], first[:2, 1:], equal_nan=True).all():
        return ""
    return ALONE if torch.isclose(plain[:2, 0], last[:2, 0]).all() else INVERTED
