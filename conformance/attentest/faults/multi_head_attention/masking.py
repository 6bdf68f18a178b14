"""Faults in what the heads may see."""

import torch

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask


@fault("multi_head_attention.last-key-cut-off", "every-input-counts", seam="head_mask")
def last_key_cut_off(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """The last key is never attended where another is left. A sentence loses its last word."""
    device = None if mask is None else mask.device
    early = torch.arange(keys, device=device) < max(1, keys - 1)
    kept = early.view(1, 1, 1, keys) if mask is None else mask & early
    only = ~kept.any(dim=-1, keepdim=True)
    return self.correct.head_mask(kept | only, batch, queries, keys)


@fault("multi_head_attention.always-causal", "key-order", seam="head_mask", origin="B022")
def always_causal(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """A call without a mask is taken to be causal.

    The encoder reads to the left alone as soon as no sentence is padded.
    """
    if mask is None:
        mask = torch.ones(1, 1, queries, keys, dtype=torch.bool).tril()
    return self.correct.head_mask(mask, batch, queries, keys)


@fault("multi_head_attention.mask-dropped", "masked-keys-ignored", seam="head_mask", origin="B022")
def mask_dropped(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """The mask is lost on the way to the heads.

    Pads and the future are seen; without padding nothing shows.
    """
    return None


@fault(
    "multi_head_attention.mask-inverted",
    "masked-keys-ignored",
    seam="head_mask",
    origin="B001, B002",
)
def mask_inverted(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """True is taken to mean blocked where it means kept.

    Attention goes to padding and to the future alone.
    """
    return self.correct.head_mask(None if mask is None else ~mask, batch, queries, keys)


@fault(
    "multi_head_attention.causal-in-place-of-mask",
    "masked-keys-ignored",
    seam="head_mask",
    origin="B022",
)
def causal_in_place_of_mask(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """A causal triangle replaces the mask that was given, where it should join it.

    Causality holds, and padding is seen.
    """
    if mask is not None:
        mask = torch.ones(1, 1, queries, keys, dtype=torch.bool, device=mask.device).tril()
    return self.correct.head_mask(mask, batch, queries, keys)


@fault(
    "multi_head_attention.padding-laid-along-queries",
    "masked-keys-ignored",
    seam="head_mask",
    origin="B011",
    choices={"fully_masked_row": "zero"},
)
def padding_laid_along_queries(
    self: Hooks, mask: Mask, batch: int, queries: int, keys: int
) -> Mask:
    """A mask of keys is laid along the queries wherever both lengths are equal.

    Pads are still read, and the rows of pads see nothing.
    """
    if mask is not None and mask.shape[-2] == 1 and queries == keys:
        mask = mask.transpose(-1, -2)
    return self.correct.head_mask(mask, batch, queries, keys)


@fault("multi_head_attention.mask-for-first-head", "one-mask-for-all-heads", seam="head_mask")
def mask_for_first_head(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """A mask with one head in its head axis acts on the first head alone.

    All other heads see pads and the future, and the first covers up for them.
    """
    if mask is None or mask.shape[1] > 1:
        return self.correct.head_mask(mask, batch, queries, keys)
    whole = mask.expand(batch, self.sizes.heads, queries, keys).clone()
    whole[:, 1:] = True
    return whole


@fault("multi_head_attention.mask-not-for-last-head", "one-mask-for-all-heads", seam="head_mask")
def mask_not_for_last_head(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """The mask is written out for one head too few; the last has none.

    One head of many sees pads and the future.
    """
    heads = self.sizes.heads
    if mask is None or heads == 1:
        return self.correct.head_mask(mask, batch, queries, keys)
    whole = mask.expand(batch, heads, queries, keys).clone()
    whole[:, -1] = True
    return whole


@fault(
    "multi_head_attention.mask-tiled-by-heads", "mask-per-sample", seam="head_mask", origin="B013"
)
def mask_tiled_by_heads(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """The mask is repeated head by head where samples and heads are merged sample by sample.

    The heads of one sentence use the padding of another; equal lengths hide it.
    """
    if mask is None or mask.shape[1] > 1:
        return self.correct.head_mask(mask, batch, queries, keys)
    heads = self.sizes.heads
    tiled = mask.expand(batch, 1, queries, keys).repeat(heads, 1, 1, 1)
    return tiled.reshape(batch, heads, queries, keys)


@fault("multi_head_attention.mask-of-first-sample", "mask-per-sample", seam="head_mask")
def mask_of_first_sample(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """The mask of the first sample is used for all.

    Sentences are cut to the length of the first.
    """
    return self.correct.head_mask(None if mask is None else mask[:1], batch, queries, keys)


@fault("multi_head_attention.masks-of-samples-joined", "mask-per-sample", seam="head_mask")
def masks_of_samples_joined(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """A key is kept for all samples as soon as one sample keeps it.

    The longest sentence of a batch decides what all others see.
    """
    joined = None if mask is None else mask.any(dim=0, keepdim=True)
    return self.correct.head_mask(joined, batch, queries, keys)


@fault("multi_head_attention.mask-of-first-head", "mask-per-head", seam="head_mask")
def mask_of_first_head(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """The mask of the first head is used for all heads.

    Masks per head have no effect; equal ones hide it.
    """
    return self.correct.head_mask(None if mask is None else mask[:, :1], batch, queries, keys)


@fault("multi_head_attention.masks-of-heads-backwards", "mask-per-head", seam="head_mask")
def masks_of_heads_backwards(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """Masks per head are dealt out from the last head to the first.

    Every head follows the mask of another; equal ones hide it.
    """
    return self.correct.head_mask(None if mask is None else mask.flip(1), batch, queries, keys)


@fault("multi_head_attention.masks-of-heads-joined", "mask-per-head", seam="head_mask")
def masks_of_heads_joined(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """A key is kept for all heads as soon as one head keeps it.

    Masks per head hide nothing but what all of them hide.
    """
    joined = None if mask is None else mask.any(dim=1, keepdim=True)
    return self.correct.head_mask(joined, batch, queries, keys)
