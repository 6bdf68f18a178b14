"""Faults in the masks of the heads."""

import torch

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask


@fault("multi_head_attention.last-key-cut-off", "every-input-counts", seam="head_mask")
def last_key_cut_off(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """The last key is never attended where another is left. A sequence loses its last token."""
    device = None if mask is None else mask.device
    early = torch.arange(keys, device=device) < max(1, keys - 1)
    kept = early.view(1, 1, 1, keys) if mask is None else mask & early
    only = ~kept.any(dim=-1, keepdim=True)
    return self.correct.head_mask(kept | only, batch, queries, keys)


@fault("multi_head_attention.always-causal", "key-order", seam="head_mask", origin="B022")
def always_causal(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """A call without a mask is causal. An encoder without padding reads to the left alone."""
    if mask is None:
        mask = torch.ones(1, 1, queries, keys, dtype=torch.bool).tril()
    return self.correct.head_mask(mask, batch, queries, keys)


@fault("multi_head_attention.mask-dropped", "masked-keys-ignored", seam="head_mask", origin="B022")
def mask_dropped(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """The mask is lost on the way to the heads. Padding and the future are read."""
    return None


@fault(
    "multi_head_attention.mask-inverted",
    "masked-keys-ignored",
    seam="head_mask",
    origin="B001, B002",
)
def mask_inverted(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """True is taken to mean blocked. Attention goes to padding and the future alone."""
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
    """A mask of keys is laid along the queries where both lengths are equal.

    Padding is still read.
    """
    if mask is not None and mask.shape[-2] == 1 and queries == keys:
        mask = mask.transpose(-1, -2)
    return self.correct.head_mask(mask, batch, queries, keys)


@fault("multi_head_attention.mask-for-first-head", "one-mask-for-all-heads", seam="head_mask")
def mask_for_first_head(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """A mask with one head in its head axis acts on the first head alone.

    Other heads see the future.
    """
    if mask is None or mask.shape[1] > 1:
        return self.correct.head_mask(mask, batch, queries, keys)
    whole = mask.expand(batch, self.sizes.heads, queries, keys).clone()
    whole[:, 1:] = True
    return whole


@fault("multi_head_attention.mask-not-for-last-head", "one-mask-for-all-heads", seam="head_mask")
def mask_not_for_last_head(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """The mask is expanded for one head too few. The last head reads padding and the future."""
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

    The heads of one sequence use the padding of another; equal lengths hide it.
    """
    if mask is None or mask.shape[1] > 1:
        return self.correct.head_mask(mask, batch, queries, keys)
    heads = self.sizes.heads
    tiled = mask.expand(batch, 1, queries, keys).repeat(heads, 1, 1, 1)
    return tiled.reshape(batch, heads, queries, keys)


@fault("multi_head_attention.mask-of-first-sample", "mask-per-sample", seam="head_mask")
def mask_of_first_sample(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """The mask of the first sample is used for all. Sequences are cut to its length."""
    return self.correct.head_mask(None if mask is None else mask[:1], batch, queries, keys)


@fault("multi_head_attention.masks-of-samples-joined", "mask-per-sample", seam="head_mask")
def masks_of_samples_joined(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """A key is kept for all samples as soon as one sample keeps it.

    The longest sequence of a batch decides what all others see.
    """
    joined = None if mask is None else mask.any(dim=0, keepdim=True)
    return self.correct.head_mask(joined, batch, queries, keys)


@fault("multi_head_attention.mask-of-first-head", "mask-per-head", seam="head_mask")
def mask_of_first_head(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """The mask of the first head is used for all heads. Masks per head have no effect."""
    return self.correct.head_mask(None if mask is None else mask[:, :1], batch, queries, keys)


@fault("multi_head_attention.masks-of-heads-backwards", "mask-per-head", seam="head_mask")
def masks_of_heads_backwards(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """Masks per head are applied in reverse order. Every head follows another's mask."""
    return self.correct.head_mask(None if mask is None else mask.flip(1), batch, queries, keys)


@fault("multi_head_attention.masks-of-heads-joined", "mask-per-head", seam="head_mask")
def masks_of_heads_joined(self: Hooks, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    """A key is kept for all heads if one head keeps it. Masks per head have no effect."""
    joined = None if mask is None else mask.any(dim=1, keepdim=True)
    return self.correct.head_mask(joined, batch, queries, keys)
