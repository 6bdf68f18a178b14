"""Faults in what the heads may see."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch

from attentest.faults.fault import fault
from attentest.specimens import Mask, Seams


@fault(
    "multi_head_attention.last-key-cut-off",
    clause="multi_head_attention.every-input-counts",
    wrong="The last key is never attended where another is left.",
    effect="A sentence loses its last word.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    device = None if mask is None else mask.device
    early = torch.arange(keys, device=device) < max(1, keys - 1)
    kept = early.view(1, 1, 1, keys) if mask is None else mask & early
    only = ~kept.any(dim=-1, keepdim=True)
    return self.sound.head_mask(kept | only, batch, queries, keys)


@fault(
    "multi_head_attention.always-causal",
    clause="multi_head_attention.key-order",
    origin="B022",
    wrong="A call without a mask is taken to be causal.",
    effect="The encoder reads to the left alone as soon as no sentence is padded.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    if mask is None:
        mask = torch.ones(1, 1, queries, keys, dtype=torch.bool).tril()
    return self.sound.head_mask(mask, batch, queries, keys)


@fault(
    "multi_head_attention.mask-dropped",
    clause="multi_head_attention.masked-keys-ignored",
    origin="B022",
    wrong="The mask is lost on the way to the heads.",
    effect="Pads and the future are seen; without padding nothing shows.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    return None


@fault(
    "multi_head_attention.mask-inverted",
    clause="multi_head_attention.masked-keys-ignored",
    origin="B001, B002",
    wrong="True is taken to mean blocked where it means kept.",
    effect="Attention goes to padding and to the future alone.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    return self.sound.head_mask(None if mask is None else ~mask, batch, queries, keys)


@fault(
    "multi_head_attention.causal-in-place-of-mask",
    clause="multi_head_attention.masked-keys-ignored",
    origin="B022",
    wrong="A causal triangle replaces the mask that was given, where it should join it.",
    effect="Causality holds, and padding is seen.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    if mask is not None:
        mask = torch.ones(1, 1, queries, keys, dtype=torch.bool, device=mask.device).tril()
    return self.sound.head_mask(mask, batch, queries, keys)


@fault(
    "multi_head_attention.padding-laid-along-queries",
    clause="multi_head_attention.masked-keys-ignored",
    origin="B011",
    wrong="A mask of keys is laid along the queries wherever both lengths are equal.",
    effect="Pads are still read, and the rows of pads see nothing.",
    choices={"fully_masked_row": "zero"},
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    if mask is not None and mask.shape[-2] == 1 and queries == keys:
        mask = mask.transpose(-1, -2)
    return self.sound.head_mask(mask, batch, queries, keys)


@fault(
    "multi_head_attention.mask-for-first-head",
    clause="multi_head_attention.one-mask-for-all-heads",
    wrong="A mask with one head in its head axis acts on the first head alone.",
    effect="All other heads see pads and the future, and the first covers up for them.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    if mask is None or mask.shape[1] > 1:
        return self.sound.head_mask(mask, batch, queries, keys)
    whole = mask.expand(batch, self.sizes.heads, queries, keys).clone()
    whole[:, 1:] = True
    return whole


@fault(
    "multi_head_attention.mask-not-for-last-head",
    clause="multi_head_attention.one-mask-for-all-heads",
    wrong="The mask is written out for one head too few; the last has none.",
    effect="One head of many sees pads and the future.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    heads = self.sizes.heads
    if mask is None or heads == 1:
        return self.sound.head_mask(mask, batch, queries, keys)
    whole = mask.expand(batch, heads, queries, keys).clone()
    whole[:, -1] = True
    return whole


@fault(
    "multi_head_attention.mask-tiled-by-heads",
    clause="multi_head_attention.mask-per-sample",
    origin="B013",
    wrong="The mask is repeated head by head where samples and heads are merged sample by sample.",
    effect="The heads of one sentence use the padding of another; equal lengths hide it.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    if mask is None or mask.shape[1] > 1:
        return self.sound.head_mask(mask, batch, queries, keys)
    heads = self.sizes.heads
    tiled = mask.expand(batch, 1, queries, keys).repeat(heads, 1, 1, 1)
    return tiled.reshape(batch, heads, queries, keys)


@fault(
    "multi_head_attention.mask-of-first-sample",
    clause="multi_head_attention.mask-per-sample",
    wrong="The mask of the first sample is used for all.",
    effect="Sentences are cut to the length of the first.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    return self.sound.head_mask(None if mask is None else mask[:1], batch, queries, keys)


@fault(
    "multi_head_attention.masks-of-samples-joined",
    clause="multi_head_attention.mask-per-sample",
    wrong="A key is kept for all samples as soon as one sample keeps it.",
    effect="The longest sentence of a batch decides what all others see.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    joined = None if mask is None else mask.any(dim=0, keepdim=True)
    return self.sound.head_mask(joined, batch, queries, keys)


@fault(
    "multi_head_attention.mask-of-first-head",
    clause="multi_head_attention.mask-per-head",
    wrong="The mask of the first head is used for all heads.",
    effect="Masks per head have no effect; equal ones hide it.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    return self.sound.head_mask(None if mask is None else mask[:, :1], batch, queries, keys)


@fault(
    "multi_head_attention.masks-of-heads-backwards",
    clause="multi_head_attention.mask-per-head",
    wrong="Masks per head are dealt out from the last head to the first.",
    effect="Every head follows the mask of another; equal ones hide it.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    return self.sound.head_mask(None if mask is None else mask.flip(1), batch, queries, keys)


@fault(
    "multi_head_attention.masks-of-heads-joined",
    clause="multi_head_attention.mask-per-head",
    wrong="A key is kept for all heads as soon as one head keeps it.",
    effect="Masks per head hide nothing but what all of them hide.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    joined = None if mask is None else mask.any(dim=1, keepdim=True)
    return self.sound.head_mask(joined, batch, queries, keys)
