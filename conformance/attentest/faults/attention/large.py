"""Faults that only large inputs show: long, deep, wide or many."""

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask


@fault("attention.last-block-left-out", "cross-lengths", seam="mix")
def last_block_left_out(self: Hooks, weights: Tensor, value: Tensor) -> Tensor:
    """Keys are taken in blocks of 64, and the remainder is left out.

    Long sequences lose their end.
    """
    keys = value.shape[-2]
    whole = keys if keys < 64 else keys // 64 * 64
    return self.correct.mix(weights[..., :whole], value[..., :whole, :])


@fault("attention.window-of-32", "cross-lengths", seam="softmax")
def window_of_32(self: Hooks, scores: Tensor) -> Tensor:
    """Keys more than 32 positions away are left out. Distant tokens do not reach each other."""
    queries, keys = scores.shape[-2:]
    if queries != keys:
        return self.correct.softmax(scores)
    place = torch.arange(keys, device=scores.device)
    far = (place[:, None] - place).abs() > 32
    return self.correct.softmax(scores.masked_fill(far, -math.inf))


@fault("attention.scale-capped", "formula", seam="scale")
def scale_capped(self: Hooks, width: int, heads: int) -> float:
    """The width in the scale is capped at 64. The softmax of wide heads is too steep."""
    return self.correct.scale(min(width, 64), heads)


@fault("attention.mask-for-three-samples", "batch-independence", seam="mask_scores")
def mask_for_three_samples(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """From the fourth sample on the mask is not applied. Padding is read in real batches."""
    return torch.cat((self.correct.mask_scores(raw, mask)[:3], raw[3:]))


@fault("attention.mask-for-ten-samples", "formula", seam="mask_scores")
def mask_for_ten_samples(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """From the eleventh sample on the mask is not applied. Padding is read in real batches."""
    return torch.cat((self.correct.mask_scores(raw, mask)[:10], raw[10:]))


@fault("attention.keys-up-to-560", "formula", seam="softmax")
def keys_up_to_560(self: Hooks, scores: Tensor) -> Tensor:
    """Keys from the 560th on are left out. Long sequences lose their end."""
    place = torch.arange(scores.shape[-1], device=scores.device)
    return self.correct.softmax(scores.masked_fill(place >= 560, -math.inf))
