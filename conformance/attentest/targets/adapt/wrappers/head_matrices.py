"""The matrices that every head of an attention gets, as a call shows them."""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
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
    """Return `built` with matrices of all columns in the place of those of one head, if it has any.

    Two or more in one module, as those of queries and keys, have to get an axis of heads, or their
    columns. Attention in a layer that has no output projection gets one.
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
            if not names:
                names = _slices(built, model)
            found = replace(built, heads=names, heads_axis=axis)
            outputs = _without_outputs(found(DISTINCT))
    except Exception:  # code that a user wrote may raise anything
        return built
    return replace(found, outputs=outputs) if names or outputs else built


def _starred(path: str) -> str:
    """Return a path with * in the place of numbers."""
    return re.sub(r"\b\d+\b", "*", path)


def _slices(built: Construction, model: nn.Module) -> tuple[str, ...]:
    """Return the paths of lists with a matrix (D/H, D/H) for each head, () where there are none.

    Two or more of them are in one module, which gives the same with a matrix of all columns.
    """
    width = DISTINCT.d_model // DISTINCT.heads
    lists: dict[str, list[str]] = {}
    for path, one in model.named_modules():
        matrices = isinstance(one, nn.ModuleList) and len(one) == DISTINCT.heads
        if matrices and all(
            isinstance(part, nn.Linear) and part.in_features == part.out_features == width
            for part in one.children()
        ):
            lists.setdefault(path.rpartition(".")[0], []).append(path)
    if any(len(one) < 2 for one in lists.values()):
        return ()
    names = tuple(sorted({_starred(path) for one in lists.values() for path in one}))
    other = replace(built, heads=names)(DISTINCT).eval() if names else model
    other.load_state_dict(_blocks(model, other))
    for above in lists:
        before, after = model.get_submodule(above), other.get_submodule(above)
        given = next((one for one in _calls(before) if _answer(before, one) is not None), None)
        if given is None:
            return ()
        first, second = _answer(before, given), _answer(after, given)
        if first is None or second is None or not torch.allclose(first, second, 1e-4, 1e-5):
            return ()
    return names


def _blocks(model: nn.Module, other: nn.Module) -> dict[str, Tensor]:
    """Return the state of `model` as that of `other`, which has one matrix for lists of them."""
    state, found = model.state_dict(), {}
    for name in other.state_dict():
        above, _, last = name.rpartition(".")
        parts = [state.get(f"{above}.{head}.{last}") for head in range(DISTINCT.heads)]
        held = [one for one in parts if one is not None]
        joined = torch.block_diag if last == "weight" else lambda *vectors: torch.cat(vectors)
        found[name] = state[name] if name in state else joined(*held)
    return found


def _answer(module: nn.Module, given: dict[str, Any]) -> Tensor | None:
    """Return the first tensor of a call, None where it fails."""
    try:
        result = module(**given)
    except Exception:  # code that a user wrote may raise anything
        return None
    first = result[0] if isinstance(result, tuple) and result else result
    return first if isinstance(first, Tensor) else None


def _without_outputs(model: nn.Module) -> tuple[str, ...]:
    """Return the paths of attention in layers that has no output projection, () for none.

    It holds three matrices of the width of the model, or as many numbers, and its layer holds
    those of a feed-forward network besides, and no other of that width alone.
    """
    width = DISTINCT.d_model
    found: dict[str, str] = {}
    matrices = {name: one for name, one in model.named_parameters() if one.dim() > 1}
    for path, one in model.named_modules():
        if not path or isinstance(one, nn.ModuleList | nn.ModuleDict | nn.Linear):
            continue
        if not any(isinstance(held, nn.Linear) for held in one.modules()):
            continue
        own = [held for held in one.parameters() if held.dim() > 1]
        vectors = [held for held in one.parameters() if held.dim() < 2]
        are_maps = all(width in held.shape for held in own)
        if sum(held.numel() for held in own) != 3 * width**2 or not are_maps or len(own) == 4:
            continue
        if any(path.startswith(f"{other}.") for other in found) or len(vectors) > len(own):
            continue
        numbers = list(re.finditer(r"(?:^|\.)\d+(?=\.)", path))
        layer = path[: numbers[-1].end() + 1] if numbers else ""
        rest = {
            name: held
            for name, held in matrices.items()
            if name.startswith(layer) and not name.startswith(f"{path}.")
        }
        squares = [held for held in rest.values() if tuple(held.shape) == (width, width)]
        if rest and not squares and any(width in held.shape for held in rest.values()):
            found[path] = _starred(path)
    return tuple(sorted(set(found.values())))


def _read(model: nn.Module) -> tuple[tuple[str, ...], int]:
    """Return the paths of the matrices of one head, and the axis of heads that they get."""
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
    paths = [f"{above}.{name}".lstrip(".") for above in held for name in names]
    tried = [(model, "")] + [(model.get_submodule(one), f"{one}.") for one in [*held][:1] if one]
    for called, start in tried:
        inside = [one.removeprefix(start) for one in paths if one.startswith(start)]
        if axis := _axis(called, inside, len(names)):
            return tuple(sorted({_starred(one) for one in paths})), axis
    return (), 0


def _axis(model: nn.Module, paths: Sequence[str], least: int) -> int:
    """Return the one axis of heads that the matrices at `paths` get in a call, 0 for none."""
    shapes: list[tuple[int, ...]] = []

    def note(call: Callable[..., Any], x: Tensor) -> Any:
        shapes.append(tuple(x.shape))
        return call(x)

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
        if len(shapes) >= least and len(axes) == 1 and 0 not in axes:
            return axes.pop()
    return 0


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
