"""Decoder-only models whose call takes one dictionary, which holds the tokens.

The classes need nothing else of the suite: reproductions and written adapters contain their source.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.objects.settings import code_tree
from attentest.targets.language_models.argument_names import SURE_MASKS, TOKENS, first_named
from attentest.targets.language_models.construction.building import Building


class OfBatch(nn.Module):
    """A `model` that takes a dictionary as its argument `own`, with the tokens as `key` in it."""

    def __init__(self, model: nn.Module, own: str, key: str) -> None:
        super().__init__()
        self.model = model
        self.own, self.key = own, key

    def forward(self, tokens: Tensor) -> Any:
        """Return what `model` returns for `tokens` (B, T)."""
        return self.model(**{self.own: {self.key: tokens}})


class OfMaskedBatch(nn.Module):
    """A `model` as that of `OfBatch`, with a mask (B, T) as `mask` in the dictionary."""

    def __init__(self, model: nn.Module, own: str, key: str, mask: str) -> None:
        super().__init__()
        self.model = model
        self.own, self.key, self.mask = own, key, mask

    def forward(self, tokens: Tensor, attention_mask: Tensor | None = None) -> Any:
        """Return what `model` returns for `tokens` (B, T), of which the mask hides none."""
        mask = torch.ones_like(tokens) if attention_mask is None else attention_mask
        return self.model(**{self.own: {self.key: tokens, self.mask: mask}})


_IMPORTS = "from typing import Any\n\nimport torch\nfrom torch import Tensor, nn\n\n\n"
OF_BATCH_SOURCE = _IMPORTS + inspect.getsource(OfBatch)
OF_MASKED_BATCH_SOURCE = _IMPORTS + inspect.getsource(OfMaskedBatch)
"""The classes as code of their own."""

_SAID = "assumed that {} is a dictionary that holds the tokens as {!r}"


def of_batch(built: Building, thing: Callable[..., Any]) -> Building:
    """Return `built` with a call of its own where the one input of `thing` is a dictionary."""
    forward = getattr(thing, "forward", None)
    if forward is None or f"{OfBatch.__name__}(" in built.expression:
        return built
    if f"{OfMaskedBatch.__name__}(" in built.expression:
        return built
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    needed = [one.name for one in parameters if one.default is one.empty]
    keys = dict.fromkeys(_keys(code_tree(forward), needed[0])) if len(needed) == 1 else {}
    key, mask = first_named(keys, TOKENS), first_named(keys, SURE_MASKS)
    if not key:
        return built
    made = OfMaskedBatch if mask else OfBatch
    given = ", ".join(repr(one) for one in (needed[0], key, mask) if one)
    return replace(
        built,
        expression=f"{made.__name__}({built.expression}, {given})",
        space={**built.space, made.__name__: made},
        doubts=(*built.doubts, _SAID.format(needed[0], key)),
    )


def _keys(tree: ast.AST, own: str) -> Iterator[str]:
    """Yield the words by which code reads the argument `own`, in brackets or by `get`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            held, words = node.value, [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            held, words = node.func.value, node.args[:1] * (node.func.attr == "get")
        else:
            continue
        if isinstance(held, ast.Name) and held.id == own:
            found = [one.value for one in words if isinstance(one, ast.Constant)]
            yield from (one for one in found if isinstance(one, str))
