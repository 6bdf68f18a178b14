"""Faults that only large inputs show: long, deep, wide or many."""

from collections.abc import Iterable

import torch

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


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


@fault("encoder.keys-up-to-256", "layer-formula", seam="encoder_mask")
def keys_up_to_256(self: Hooks, mask: Mask) -> Mask:
    """Keys from the 256th on are hidden. Long sequences lose their end."""
    if mask is None:
        return mask
    return mask & (torch.arange(mask.shape[-1], device=mask.device) < 256)
