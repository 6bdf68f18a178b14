"""Faults that only large inputs show: long, deep, wide or many."""

from collections.abc import Iterable

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Inputs, Mask, Node


@fault(
    "encoder.three-layers-at-most",
    "layers-in-sequence",
    seam="layers_of",
    components=("encoder", "decoder"),
)
def three_layers_at_most(self: Hooks, module: Node) -> Iterable[Node]:
    """Layers from the fourth on are skipped. Shallow tests pass."""
    return list(module.layers)[:3]


@fault("encoder.long-sentences-lose-their-start", "formula", seam="encoder_mask", in_layer=True)
def long_sentences_lose_their_start(self: Hooks, mask: Mask) -> Mask:
    """Beyond 16 positions the first eight are hidden. Short tests pass."""
    if mask is None or mask.shape[-1] <= 16:
        return mask
    place = torch.arange(mask.shape[-1], device=mask.device)
    return mask & (place >= 8)


@fault("encoder.values-up-to-256", "layer-formula", seam="self_inputs")
def values_up_to_256(self: Hooks, x: Tensor) -> Inputs:
    """Values from position 256 on are read as zeros. Long sequences lose their end."""
    query, key, value = self.correct.self_inputs(x)
    place = torch.arange(x.shape[1], device=x.device)
    return query, key, value * (place < 256)[:, None]
