"""The matrices that every head of an attention gets, as a call shows them."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed

_BATCH, _LENGTH = 2, 3
_AXES = (-2, -3)
"""The axis of heads in (B, L, H, D/H) and in (B, H, L, D/H)."""


def with_own_heads(built: Construction) -> Construction:
    """Return `built` with a matrix for all heads in the place of one for each, where it has those.

    Two or more in one module, as those of queries and keys, have to get an axis of heads.
    """
    if "heads" not in built.known:
        return built
    try:
        with undisturbed():
            model = built(DISTINCT)
            if not isinstance(model, nn.Module):
                return built
            model.eval()
            names, axis = _read(model)
    except Exception:  # code that a user wrote may raise anything
        return built
    return replace(built, heads=names, heads_axis=axis) if names else built


def _read(model: nn.Module) -> tuple[tuple[str, ...], int]:
    """Return the names of the matrices of one head, and the axis of heads that they get."""
    width = DISTINCT.d_model // DISTINCT.heads
    places: dict[str, list[str]] = {}
    for path, one in model.named_modules():
        if isinstance(one, nn.Linear) and one.in_features == one.out_features == width:
            above, _, name = path.rpartition(".")
            places.setdefault(above, []).append(name)
    held = {above: names for above, names in places.items() if len(names) > 1}
    found = {tuple(sorted(names)) for names in held.values()}
    if len(found) != 1 or any(one.isdigit() for names in found for one in names):
        return (), 0
    (names,) = found
    shapes: list[tuple[int, ...]] = []

    def note(call: Callable[..., Any], x: Tensor) -> Any:
        shapes.append(tuple(x.shape))
        return call(x)

    paths = [f"{above}.{name}".lstrip(".") for above in held for name in names]
    for given in _calls(model):
        shapes.clear()
        with ExitStack() as watching, suppress(Exception):
            for path in paths:
                one = model.get_submodule(path)
                watching.callback(setattr, one, "forward", one.forward)
                one.forward = partial(note, one.forward)
            model(**given)
        axes = {
            next((at for at in _AXES if len(one) == 4 and one[at] == DISTINCT.heads), 0)
            for one in shapes
        }
        if len(shapes) >= len(names) and len(axes) == 1 and 0 not in axes:
            return names, axes.pop()
    return (), 0


def _calls(model: nn.Module) -> Iterator[dict[str, Any]]:
    """Yield arguments that a call may accept: vectors or ids, and masks that hide nothing."""
    source = torch.Generator().manual_seed(0)
    kind = next(model.parameters()).dtype
    vectors = torch.randn(_BATCH, _LENGTH, DISTINCT.d_model, generator=source).to(kind)
    ids = torch.ones(_BATCH, _LENGTH, dtype=torch.int64)
    needed = [
        one.name
        for one in inspect.signature(model.forward).parameters.values()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    masks = [one for one in needed if "mask" in squashed(one)]
    every = torch.ones(_BATCH, 1, _LENGTH, _LENGTH, dtype=torch.bool)
    hidden = (None, every[:, :, :1], every, every[:, 0], torch.ones_like(ids).bool())
    for mask in hidden if masks else (None,):
        for entering in (vectors, ids):
            yield dict.fromkeys(needed, entering) | dict.fromkeys(masks, mask)
