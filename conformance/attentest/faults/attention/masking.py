"""Faults in the mask: the keys that a query attends to, and rows without a key."""

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask


@fault("attention.mask-inverted", "masked-keys-ignored", seam="mask_scores", origin="B001, B002")
def mask_inverted(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """True is taken to mean blocked. Attention goes to padding and the future alone."""
    return self.correct.mask_scores(raw, None if mask is None else ~mask)


@fault(
    "attention.mask-forgotten",
    "masked-keys-ignored",
    seam="mask_scores",
    origin="C: masked self-attention never adds its mask",
)
def mask_forgotten(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """The mask is accepted and never used. Padding and the future are read."""
    return raw


@fault(
    "attention.causal-in-place-of-mask", "masked-keys-ignored", seam="mask_scores", origin="B022"
)
def causal_in_place_of_mask(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """A causal triangle replaces the mask that was given, where it should join it.

    Causality holds, and padding is seen.
    """
    if mask is None:
        return raw
    return self.correct.mask_scores(raw, torch.ones_like(raw, dtype=torch.bool).tril())


@fault(
    "attention.empty-row-nan",
    "fully-masked-row",
    seam="empty_rows",
    origin="B009",
    choices={"fully_masked_row": "zero"},
)
def empty_row_nan(self: Hooks, weights: Tensor, mask: Mask) -> Tensor:
    """A row without a key is a softmax over minus infinities, where zeros are declared.

    NaN, and through 0 * NaN in the backward pass it reaches every weight.
    """
    if mask is None:
        return weights
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), math.nan)


@fault(
    "attention.empty-row-mean",
    "fully-masked-row",
    seam="empty_rows",
    origin="B010",
    choices={"fully_masked_row": "zero"},
)
def empty_row_mean(self: Hooks, weights: Tensor, mask: Mask) -> Tensor:
    """A row without a key is a softmax over equal fills, where zeros are declared.

    It is the mean of all values, padding included.
    """
    if mask is None:
        return weights
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 1.0 / weights.shape[-1])


@fault(
    "attention.empty-row-spoils-others",
    "fully-masked-row",
    seam="empty_rows",
    choices={"fully_masked_row": "zero"},
)
def empty_row_spoils_others(self: Hooks, weights: Tensor, mask: Mask) -> Tensor:
    """One row without a key sets the whole sample to zero. One padded query erases a sequence."""
    if mask is None:
        return weights
    spoiled = ~mask.any(dim=-1, keepdim=True).all(dim=-2, keepdim=True)
    return weights.masked_fill(spoiled, 0.0)


@fault("attention.mask-tiled-by-heads", "batch-independence", seam="mask_scores", origin="B013")
def mask_tiled_by_heads(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """The mask is repeated head by head where samples and heads are merged sample by sample.

    The heads of one sequence use the padding of another; equal lengths hide it.
    """
    if mask is None or mask.shape[1] > 1:
        return self.correct.mask_scores(raw, mask)
    whole = mask.expand(raw.shape[0], 1, *raw.shape[-2:])
    return self.correct.mask_scores(raw, whole.repeat(raw.shape[1], 1, 1, 1).reshape(raw.shape))


@fault("attention.mask-of-first-sample", "batch-independence", seam="mask_scores")
def mask_of_first_sample(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """The mask of the first sample is used for all. Sequences are cut to its length."""
    return self.correct.mask_scores(raw, None if mask is None else mask[:1])


@fault(
    "attention.padding-laid-along-queries",
    "mask-shapes",
    seam="mask_scores",
    origin="B011",
    choices={"fully_masked_row": "zero"},
)
def padding_laid_along_queries(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """A mask of keys is laid along the queries where both lengths are equal.

    Padding is still read.
    """
    if mask is None or mask.shape[-2] > 1 or raw.shape[-2] != raw.shape[-1]:
        return self.correct.mask_scores(raw, mask)
    return self.correct.mask_scores(raw, mask.transpose(-1, -2))


@fault("attention.mask-of-first-query", "mask-shapes", seam="mask_scores")
def mask_of_first_query(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """The mask of the first query is used for all: it is taken for a mask of padding.

    Under a causal mask every query sees the first key alone.
    """
    return self.correct.mask_scores(raw, None if mask is None else mask[:, :, :1])


@fault("attention.mask-of-first-head", "mask-shapes", seam="mask_scores")
def mask_of_first_head(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """The mask of the first head is used for all heads. Masks per head have no effect."""
    return self.correct.mask_scores(raw, None if mask is None else mask[:, :1])
