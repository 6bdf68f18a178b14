"""Faults that show in what is long, deep, wide or many, and in nothing small."""

# mypy: disable-error-code="no-redef"

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Mask, Seams


@fault(
    "attention.last-block-left-out",
    clause="attention.cross-lengths",
    wrong="Keys are taken in blocks of 64, and what is left over at the end is never attended to.",
    effect="Right for short sentences; of long ones the end is not read.",
)
def mix(self: Seams, weights: Tensor, value: Tensor) -> Tensor:
    keys = value.shape[-2]
    whole = keys if keys < 64 else keys // 64 * 64
    return self.sound.mix(weights[..., :whole], value[..., :whole, :])


@fault(
    "attention.window-of-32",
    clause="attention.cross-lengths",
    wrong="Keys more than 32 positions away are left out.",
    effect="Right for short sentences; far words do not reach each other.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    queries, keys = scores.shape[-2:]
    if queries != keys:
        return self.sound.softmax(scores)
    place = torch.arange(keys, device=scores.device)
    far = (place[:, None] - place).abs() > 32
    return self.sound.softmax(scores.masked_fill(far, -math.inf))


@fault(
    "attention.scale-capped",
    clause="attention.formula",
    wrong="The width in the scale is cut off at 64.",
    effect="Right for narrow heads; the softmax of wide ones is too steep.",
)
def scale(self: Seams, width: int, heads: int) -> float:
    return self.sound.scale(min(width, 64), heads)


@fault(
    "attention.mask-for-three-samples",
    clause="attention.batch-independence",
    wrong="From the fourth sample on the mask is not applied.",
    effect="Right in small tests; padding is read in every real batch.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return torch.cat((self.sound.mask_scores(raw, mask)[:3], raw[3:]))
