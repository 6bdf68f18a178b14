"""Stacks with one layer, as for all depths: the layer is found by its parameters."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from torch import nn
from torch.nn.parameter import is_lazy

from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.parameters.building import DISTINCT, RATIOS
from attentest.targets.adapt.parameters.layers import is_feed
from attentest.targets.adapt.parameters.stacks import lists_of_layers
from attentest.targets.adapt.parameters.units import Unit, units
from attentest.targets.adapt.probing import undisturbed
from attentest_spec import Sizes


def shared_layers(model: nn.Module, sizes: Sizes) -> Iterator[str]:
    """Yield the paths of layers in `model` that no list holds.

    A layer has matrices to and from the inner width and others; no module inside of it has both.
    """
    for path, one in model.named_modules():
        inner = (child for child in one.modules() if child is not one)
        if not path or any(part.isdigit() for part in path.split(".")) or not _is_layer(one, sizes):
            continue
        if not any(_is_layer(child, sizes) for child in inner):
            yield path


def _is_layer(module: nn.Module, sizes: Sizes) -> bool:
    """Say whether a module has two matrices of a network, and others."""
    own = [one for one in units(module, sizes.heads) if one.kind != "norm"]
    return 2 <= sum(is_feed(one, sizes) for one in own) < len(own)


def with_own_layers(built: Construction) -> Iterator[Construction]:
    """Yield `built` with a layer for each depth, for each layer that may be one for all depths.

    There is none where it is built with no number of layers, or holds a list of them.
    """
    if "layers" in built.known:
        yield from _with_layers(built, DISTINCT)


def with_one_layer(built: Construction) -> Iterator[Construction]:
    """Yield `built` with its one layer as a list of it, where it is built with no number of them.

    There is none where it holds a list of layers, or several that are in no list.
    """
    if "layers" not in built.known:
        found = list(_with_layers(built, DISTINCT.but(layers=1)))
        yield from found if len({one.shared for one in found}) == 1 else ()


def _with_layers(built: Construction, distinct: Sizes) -> Iterator[Construction]:
    for sizes in (distinct, *(distinct.but(d_ff=one * distinct.d_model) for one in RATIOS)):
        try:
            with undisturbed():
                model = built(sizes)
            if not isinstance(model, nn.Module) or any(map(is_lazy, model.parameters())):
                return
        except Exception:  # code that a user wrote may raise anything
            return
        if lists_of_layers(units(model, sizes.heads), sizes):
            return
        for path in shared_layers(model, sizes):
            yield replace(built, shared=path)


def holds_one_layer(module: nn.Module, layers: int) -> bool:
    """Say whether a list in `module` holds one layer so many times."""
    lists = [one for one in module.modules() if isinstance(one, nn.ModuleList | nn.Sequential)]
    return any(len(each) == layers and len(set(map(id, each))) == 1 for each in lists)


ONE_LAYER = (
    "its layers are one module that a list holds several times, as [layer] * n does, and share "
    "all parameters. If each is to have its own, that is a mistake; if not, name the classes of "
    "its parts"
)
"""The words on a model that does."""


def has_one_attention(layer: Sequence[Unit], sizes: Sizes) -> bool:
    """Say whether a layer holds the matrices of one attention, and not of two.

    Each head may be as wide as the model.
    """
    rest = [one for one in layer if one.kind != "norm" and not is_feed(one, sizes)]
    numbers = sum(prod(one.shape) * (sizes.heads if one.per_head else 1) for one in rest)
    wide = sizes.heads * sizes.d_model
    is_wide = any({wide, 3 * wide} & {*one.shape} for one in rest)
    return numbers < 6 * sizes.d_model * (wide if is_wide else sizes.d_model)
