"""Builds a module whose parameters are searched, at sizes by which shapes tell roles apart."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from attentest.targets.adapt.objects.unregistered import unregistered
from attentest.targets.adapt.parameters.layers import Lost
from attentest.targets.adapt.parameters.units import squeezed, units
from attentest.targets.adapt.parameters.words import projections
from attentest_spec import Sizes

DISTINCT = Sizes(
    d_model=20,
    heads=5,
    d_ff=28,
    layers=2,
    source_vocabulary=23,
    target_vocabulary=29,
    max_length=33,
    experts=6,
    chosen_experts=3,
    window=48,
)
"""Sizes that differ, and no small multiple of each other, so that shapes tell roles apart.

No window ends within a text of them.
"""

_RETREATS: tuple[Mapping[str, int], ...] = (
    {},
    {"target_vocabulary": DISTINCT.source_vocabulary},
    {"layers": 1},
    {"layers": 1, "target_vocabulary": DISTINCT.source_vocabulary},
    {"heads": 1},
    {"heads": 1, "layers": 1},
)
"""Changes to the sizes, one set after the other, for a module that refuses them."""


RATIOS = (4, 2, 8, 3)
"""The usual ratios of inner width and model width."""


def built(build: Callable[[Sizes], nn.Module], wanted: Sizes) -> tuple[nn.Module, Sizes]:
    """Build at sizes that all differ, or at the nearest that are not refused; Lost where none do.

    The sizes have one head of keys and values where the code has one.
    """
    reason = ""
    for changes in _RETREATS:
        sizes = wanted.but(**changes)
        try:
            with torch.random.fork_rng(devices=[]):
                module = build(sizes)
        except Exception as failure:  # whatever a foreign constructor raises
            reason = reason or f"{type(failure).__name__}: {failure}"
            continue
        return _with_parameters(module), _with_key_heads(build, module, sizes)
    raise Lost(f"building at {wanted} failed with {reason}")


def _with_parameters(module: Any) -> nn.Module:
    if not isinstance(module, nn.Module):
        raise Lost(f"what is built is no torch.nn.Module but a {type(module).__name__}")
    parameters = list(module.parameters())
    if reason := unregistered(module):
        raise Lost(reason)
    if not parameters:
        raise Lost("the module holds no parameters")
    if any(nn.parameter.is_lazy(one) for one in parameters):
        raise Lost("its parameters have no shape before the first call")
    return module


_MANY = DISTINCT.but(d_model=32, heads=16)
"""Sizes at which a part of the heads is more than one head."""


def _with_key_heads(build: Callable[[Sizes], nn.Module], module: nn.Module, sizes: Sizes) -> Sizes:
    """Return `sizes` with one head of keys and values where `module` has one for all of queries.

    It has one whatever the number of heads is, and no part of them.
    """
    if not _has_one_key_head(module, sizes):
        return sizes
    try:
        with torch.random.fork_rng(devices=[]):
            several = _has_one_key_head(build(_MANY), _MANY)
    except Exception:  # whatever a foreign constructor raises
        return sizes
    return sizes.but(kv_heads=1) if several else sizes


def _has_one_key_head(module: nn.Module, sizes: Sizes) -> bool:
    """Say whether names and shapes show one head of keys and values for several of queries."""
    width = sizes.d_model // sizes.heads
    rows = {
        ("key",): width,
        ("key", "value"): 2 * width,
        ("query", "key", "value"): sizes.d_model + 2 * width,
    }
    held = [one for one in units(module, sizes.heads) if not one.per_head]
    said = [projections(unit.path) for unit in held]
    narrow = {
        roles
        for unit, roles in zip(held, said, strict=True)
        if {*squeezed(unit.shape)} == {rows.get(roles, 0), sizes.d_model}
    }
    queries = [unit for unit, roles in zip(held, said, strict=True) if roles == ("query",)]
    full = any(squeezed(one.shape) == (sizes.d_model, sizes.d_model) for one in queries)
    return sizes.heads > 1 and any(full or "query" in roles for roles in narrow)


SQUARE = "its matrices are as wide as the model"
"""The doubt about a module whose inner width is the width of the model."""


def inner_widths(module: nn.Module, sizes: Sizes) -> list[int]:
    """Return the widths of matrices that are not those of `sizes`, and may be an inner one.

    None where the module has the inner width that was asked for: others are those of other parts.
    """
    if _takes_inner_width(module, sizes):
        return []
    wide = [
        set(one.shape) - {1}
        for one in module.parameters()
        if one.dim() > 1 and one.dtype.is_floating_point
    ]
    beside = {next(iter(one - {sizes.d_model})) for one in wide if len(one - {sizes.d_model}) == 1}
    known = {sizes.d_ff, sizes.source_vocabulary, sizes.target_vocabulary, sizes.max_length}
    if {frozenset(one) for one in wide} == {frozenset([sizes.d_model])}:
        return [sizes.d_model]
    usual = [ratio * sizes.d_model for ratio in RATIOS]
    rest = sorted(one for one in beside - known - set(usual) if one > sizes.d_model)
    square = [sizes.d_model] * (wide.count({sizes.d_model}) > _SQUARES)
    return [one for one in usual if one in beside] + rest + square


_SQUARES = 2
"""The matrices as wide as the model that are those of a network of such a width alone."""


def _takes_inner_width(module: nn.Module, sizes: Sizes) -> bool:
    """Say whether two matrices or more have the inner width of `sizes`, and the model's."""
    widths = {sizes.d_ff, 2 * sizes.d_ff}
    held = [set(one.shape) for one in module.parameters() if one.dim() == 2]
    return sum(bool(one & widths) and sizes.d_model in one for one in held) > 1
