"""Faults that show in what is long, deep, wide or many, and in nothing small."""

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask


@fault("attention.last-block-left-out", "cross-lengths", seam="mix")
def last_block_left_out(self: Hooks, weights: Tensor, value: Tensor) -> Tensor:
    """Keys are taken in blocks of 64, and what is left over at the end is never attended to.

    Right for short sentences; of long ones the end is not read.
    """
    keys = value.shape[-2]
    whole = keys if keys < 64 else keys // 64 * 64
    return self.correct.mix(weights[..., :whole], value[..., :whole, :])


@fault("attention.window-of-32", "cross-lengths", seam="softmax")
def window_of_32(self: Hooks, scores: Tensor) -> Tensor:
    """Keys more than 32 positions away are left out.

    Right for short sentences; far words do not reach each other.
    """
    queries, keys = scores.shape[-2:]
    if queries != keys:
        return self.correct.softmax(scores)
    place = torch.arange(keys, device=scores.device)
    far = (place[:, None] - place).abs() > 32
    return self.correct.softmax(scores.masked_fill(far, -math.inf))


@fault("attention.scale-capped", "formula", seam="scale")
def scale_capped(self: Hooks, width: int, heads: int) -> float:
    """The width in the scale is cut off at 64.

    Right for narrow heads; the softmax of wide ones is too steep.
    """
    return self.correct.scale(min(width, 64), heads)


@fault("attention.mask-for-three-samples", "batch-independence", seam="mask_scores")
def mask_for_three_samples(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """From the fourth sample on the mask is not applied.

    Right in small tests; padding is read in every real batch.
    """
    return torch.cat((self.correct.mask_scores(raw, mask)[:3], raw[3:]))
