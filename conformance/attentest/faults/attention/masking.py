"""Faults in which keys a query may see, and rows that see none."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Mask, Seams


@fault(
    "attention.mask-inverted",
    clause="attention.masked-keys-ignored",
    origin="B001, B002",
    wrong="True is taken to mean blocked where it means kept.",
    effect="Attention goes to padding and to the future alone.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return self.sound.mask_scores(raw, None if mask is None else ~mask)


@fault(
    "attention.mask-forgotten",
    clause="attention.masked-keys-ignored",
    origin="C: masked self-attention never adds its mask",
    wrong="The mask is accepted and never used.",
    effect="Pads and the future are seen; without padding nothing shows.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw


@fault(
    "attention.causal-in-place-of-mask",
    clause="attention.masked-keys-ignored",
    origin="B022",
    wrong="A causal triangle replaces the mask that was given, where it should join it.",
    effect="Causality holds, and padding is seen.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    if mask is None:
        return raw
    return self.sound.mask_scores(raw, torch.ones_like(raw, dtype=torch.bool).tril())


@fault(
    "attention.empty-row-nan",
    clause="attention.fully-masked-row",
    origin="B009",
    wrong="A row without a key is a softmax over minus infinities, where zeros are declared.",
    effect="NaN, and through 0 * NaN in the backward pass it reaches every weight.",
    choices={"fully_masked_row": "zero"},
)
def empty_rows(self: Seams, weights: Tensor, mask: Mask) -> Tensor:
    if mask is None:
        return weights
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), math.nan)


@fault(
    "attention.empty-row-mean",
    clause="attention.fully-masked-row",
    origin="B010",
    wrong="A row without a key is a softmax over equal fills, where zeros are declared.",
    effect="The mean of all values, pads included: plausible, and changing with the padding.",
    choices={"fully_masked_row": "zero"},
)
def empty_rows(self: Seams, weights: Tensor, mask: Mask) -> Tensor:
    if mask is None:
        return weights
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 1.0 / weights.shape[-1])


@fault(
    "attention.empty-row-spoils-others",
    clause="attention.fully-masked-row",
    wrong="One row without a key turns the whole sample into zeros.",
    effect="A single wholly padded query silences its sentence.",
    choices={"fully_masked_row": "zero"},
)
def empty_rows(self: Seams, weights: Tensor, mask: Mask) -> Tensor:
    if mask is None:
        return weights
    spoiled = ~mask.any(dim=-1, keepdim=True).all(dim=-2, keepdim=True)
    return weights.masked_fill(spoiled, 0.0)


@fault(
    "attention.mask-tiled-by-heads",
    clause="attention.batch-independence",
    origin="B013",
    wrong="The mask is repeated head by head where samples and heads are merged sample by sample.",
    effect="The heads of one sentence use the padding of another; equal lengths hide it.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    if mask is None or mask.shape[1] > 1:
        return self.sound.mask_scores(raw, mask)
    whole = mask.expand(raw.shape[0], 1, *raw.shape[-2:])
    return self.sound.mask_scores(raw, whole.repeat(raw.shape[1], 1, 1, 1).reshape(raw.shape))


@fault(
    "attention.mask-of-first-sample",
    clause="attention.batch-independence",
    wrong="The mask of the first sample is used for all.",
    effect="Sentences are cut to the length of the first.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return self.sound.mask_scores(raw, None if mask is None else mask[:1])


@fault(
    "attention.padding-laid-along-queries",
    clause="attention.mask-shapes",
    origin="B011",
    wrong="A mask of keys is laid along the queries wherever both lengths are equal.",
    effect="Pads are still read, and the rows of pads see nothing.",
    choices={"fully_masked_row": "zero"},
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    if mask is None or mask.shape[-2] > 1 or raw.shape[-2] != raw.shape[-1]:
        return self.sound.mask_scores(raw, mask)
    return self.sound.mask_scores(raw, mask.transpose(-1, -2))


@fault(
    "attention.mask-of-first-query",
    clause="attention.mask-shapes",
    wrong="The mask of the first query is used for all: it is taken for a mask of padding.",
    effect="Under a causal mask every query sees the first key alone.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return self.sound.mask_scores(raw, None if mask is None else mask[:, :, :1])


@fault(
    "attention.mask-of-first-head",
    clause="attention.mask-shapes",
    wrong="The mask of the first head is used for all heads.",
    effect="Masks per head have no effect; all other shapes hide it.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return self.sound.mask_scores(raw, None if mask is None else mask[:, :1])
