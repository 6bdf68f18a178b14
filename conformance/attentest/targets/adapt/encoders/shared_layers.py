"""Stacks with one layer for all depths: the layer is found by its parameters."""

from collections.abc import Iterator
from dataclasses import replace

from torch import nn

from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.parameters.building import DISTINCT, RATIOS
from attentest.targets.adapt.parameters.layers import is_feed
from attentest.targets.adapt.parameters.stacks import lists_of_layers
from attentest.targets.adapt.parameters.units import units
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
    if "layers" not in built.known:
        return
    for sizes in (DISTINCT, *(DISTINCT.but(d_ff=one * DISTINCT.d_model) for one in RATIOS)):
        try:
            with undisturbed():
                model = built(sizes)
        except Exception:  # code that a user wrote may raise anything
            return
        if not isinstance(model, nn.Module) or lists_of_layers(units(model, sizes.heads), sizes):
            return
        for path in shared_layers(model, sizes):
            yield replace(built, shared=path)
