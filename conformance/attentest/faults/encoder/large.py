"""Faults that show in what is long, deep, wide or many, and in nothing small."""

# mypy: disable-error-code="no-redef"

from collections.abc import Iterable

import torch
from torch import nn

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


@fault(
    "encoder.three-layers-at-most",
    clause="encoder.layers-in-sequence",
    wrong="Layers from the fourth on are skipped.",
    effect="Shallow tests pass, and a deep model is a shallow one.",
    components=("encoder", "decoder"),
)
def layers_of(self: Seams, module: Node) -> Iterable[nn.Module]:
    return list(module.layers)[:3]


@fault(
    "encoder.long-sentences-lose-their-start",
    clause="encoder.formula",
    wrong="Beyond 16 positions the first eight are hidden.",
    effect="Short tests pass; in long sentences nobody reads the start.",
    components=("encoder_layer",),
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    if mask is None or mask.shape[-1] <= 16:
        return mask
    place = torch.arange(mask.shape[-1], device=mask.device)
    return mask & (place >= 8)
