"""Models whose logits depend on the wrong tokens, or on none alone, and the words on them."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attentest.targets.adapt.probing import undisturbed

INVERTED = (
    "the logits of a token depend on the tokens after it, and on none before it: its mask of later "
    "tokens is inverted, as a triangle of True is where True hides a token"
)

ALONE = (
    "the logits of a token depend on that token alone: no layer that reads those before it has an "
    "effect"
)
RANDOM = (
    "in evaluation mode two calls with the same tokens give different logits: something in it is "
    "random there, as dropout by a function that is given no mode (F.dropout(x, p), or "
    "scaled_dot_product_attention(.., dropout_p=p) where p if self.training else 0.0 is meant), or "
    "noise of a router"
)


def is_random(model: nn.Module, function: Any, tokens: Tensor) -> bool:
    """Say whether two calls of `function` with the `model` give different logits."""
    try:
        with undisturbed():
            first, second = (function(model, tokens) for _ in range(2))
    except Exception:  # code that a user wrote may raise anything
        return False
    if not (isinstance(first, Tensor) and isinstance(second, Tensor)):
        return False
    return first.shape != second.shape or not torch.equal(first.nan_to_num(), second.nan_to_num())


def first_random(model: nn.Module, function: Any, tokens: Tensor) -> str:
    """Return which module is the first to give another result in a second call, "" for none."""
    results: list[tuple[str, list[Tensor]]] = []

    def keep(module: nn.Module, _: Any, made: Any) -> None:
        path = next((name for name, one in model.named_modules() if one is module), "")
        tensors = [one.detach().clone() for one in tree_leaves(made) if isinstance(one, Tensor)]
        results.append((f"{path} ({type(module).__name__})", tensors))

    hooks = [one.register_forward_hook(keep) for one in model.modules() if one is not model]
    try:
        with undisturbed():
            for _ in range(2):
                function(model, tokens)
    except Exception:  # code that a user wrote may raise anything
        return ""
    finally:
        for one in hooks:
            one.remove()
    half = len(results) // 2
    for (name, before), (other, after) in zip(results[:half], results[half:], strict=False):
        same = all(map(torch.equal, before, after)) and len(before) == len(after)
        if name == other and not same:
            return f", first of all modules in {name}"
    return ""


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
