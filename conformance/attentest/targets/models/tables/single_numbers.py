"""Norms that train one number for all columns: models are judged with one for each column.

The function needs nothing else of the suite: written adapters contain its source.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.models.trials import Building

_NEAR = 1e-3
"""Largest difference from a norm without an epsilon, of rows with a variance near 9."""


def in_columns(model: nn.Module, width: int, kind: str) -> nn.Module:
    """Return `model` whose norms of the class `kind` hold their number once for each column."""
    for module in model.modules():
        if type(module).__name__ == kind:
            for name, one in list(module.named_parameters(recurse=False)):
                rows = one.detach().reshape(-1)[:1].repeat(width)
                setattr(module, name, nn.Parameter(rows, one.requires_grad))
    return model


IN_COLUMNS_SOURCE = "from torch import nn\n\n\n" + inspect.getsource(in_columns)
"""The function as code of its own, for a reproduction or a written adapter."""

SAID = (
    "assumed that norms that train one number for all columns, as {} does, are meant: this spec "
    "has one for each column, and it is judged with that number in each"
)


def with_columns(built: Building) -> Building:
    """Return `built` with a number for each column in its norms that hold one for all.

    It is returned as it is where it has none, or where they are no norms of the spec by their
    numbers, as a scale norm is none.
    """
    kind = kind_of_one_number(
        lambda: built(DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    )
    if not kind:
        return built
    said = SAID.format(kind)
    return replace(
        built,
        expression=f"{in_columns.__name__}({built.expression}, sizes.d_model, {kind!r})",
        space={**built.space, in_columns.__name__: in_columns},
        said=(*built.said, said),
        doubts=(*built.doubts, said),
    )


def kind_of_one_number(build: Callable[[], nn.Module]) -> str:
    """Return the class of the norms of what is built that train one number, "" for no such."""
    try:
        with undisturbed():
            found = [one for one in build().double().modules() if _is_scalar(one)]
            kinds = {type(one).__name__ for one in found}
            # One of them may have another epsilon, which is a mistake that is judged.
            is_one = len(kinds) == 1 and any(map(_is_norm, found))
    except Exception:  # code that a user wrote may raise anything
        return ""
    return kinds.pop() if is_one else ""


def _is_scalar(module: nn.Module) -> bool:
    """Say whether a module without parts trains one or two single numbers, and nothing else."""
    held = list(module.parameters())
    own = list(module.parameters(recurse=False))
    return len(held) == len(own) and len(own) in (1, 2) and all(one.numel() == 1 for one in own)


def _is_norm(module: nn.Module) -> bool:
    """Say whether what a module computes is a layer norm or an RMS norm, times and plus numbers."""
    source = torch.Generator().manual_seed(0)
    x = 3 * torch.randn(2, 5, DISTINCT.d_model, generator=source, dtype=torch.float64) + 1
    own = list(module.parameters())
    before = [one.detach().clone() for one in own]
    for one, value in zip(own, (1.7, 0.4), strict=False):
        one.fill_(value)
    output: Any = module(x)
    for one, kept in zip(own, before, strict=True):
        one.copy_(kept)
    if not isinstance(output, Tensor) or output.shape != x.shape:
        return False
    numbers = [(1.7, 0.4), (0.4, 1.7)] if len(own) == 2 else [(1.7, 0.0)]
    return any(
        bool((output - (factor * one + added)).abs().max() < _NEAR)
        for one in _normed(x)
        for factor, added in numbers
    )


def _normed(x: Tensor) -> Iterator[Tensor]:
    """Yield the rows of `x` normed in each of the ways of the spec, without an epsilon."""
    centred = x - x.mean(-1, keepdim=True)
    for unbiased in (False, True):
        yield centred / x.std(-1, keepdim=True, unbiased=unbiased)
    yield x / x.square().mean(-1, keepdim=True).sqrt()
