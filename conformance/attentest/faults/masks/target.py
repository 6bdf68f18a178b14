"""Faults in the target mask: padding and causality together."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("masks.target-joined-by-or", "target-is-both", seam="join_masks")
def target_joined_by_or(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """Padding and causal mask are joined by or.

    Every real token of the future is seen, and every pad of the past.
    """
    return padding | causal


@fault("masks.target-without-padding", "target-is-both", seam="join_masks")
def target_without_padding(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """The target mask is the causal one alone. Pads among the target tokens are read."""
    return causal.expand(len(padding), -1, -1, -1)


@fault("masks.target-without-causal", "target-is-both", seam="join_masks", origin="B110")
def target_without_causal(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """The target mask is the padding mask alone.

    The decoder reads the words that it has to predict.
    """
    return padding & torch.ones_like(causal)


@fault("masks.target-with-source-pad", "target-is-both", seam="target_mask", origin="B019")
def target_with_source_pad(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The target mask goes by the pad id of the source.

    Target pads are read, and a real target word is hidden.
    """
    return self.correct.target_mask(tokens, self.sizes.source_pad)


@fault(
    "masks.target-padding-on-queries",
    "target-blocks-pad-keys",
    seam="join_masks",
    origin="systems.md B",
)
def target_padding_on_queries(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """The target's padding blocks the rows of the pads and not their columns.

    Real tokens read pads, and pads have no key at all.
    """
    return padding.transpose(-2, -1) & causal


@fault("masks.target-pads-see-themselves", "target-blocks-pad-keys", seam="join_masks")
def target_pads_see_themselves(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """The diagonal is kept for pads too, so that no row is empty.

    A pad reads itself, and its row depends on the pad's embedding.
    """
    itself = torch.eye(causal.shape[-1], dtype=torch.bool, device=causal.device)
    return (padding & causal) | itself


@fault("masks.target-pads-hidden-from-pads", "target-blocks-pad-keys", seam="join_masks")
def target_pads_hidden_from_pads(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """Pads are hidden from the queries that are pads, and from no other.

    Every real token after a pad reads it.
    """
    return (padding | padding.transpose(-2, -1)) & causal


@fault(
    "masks.target-pad-queries-blocked",
    "target-keeps-pad-queries",
    seam="join_masks",
    origin="systems.md B",
)
def target_pad_queries_blocked(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """A query that is a pad is blocked beside the keys that are pads.

    Rows without a key become NaN or a mean, and reach gradients.
    """
    return padding & padding.transpose(-2, -1) & causal


@fault("masks.target-pad-queries-first-key-only", "target-keeps-pad-queries", seam="join_masks")
def target_pad_queries_first_key_only(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """A query that is a pad is left the first key alone, to save its row from NaN.

    Pads read another sentence than a token in their place would.
    """
    first = torch.zeros_like(causal)
    first[..., 0] = True
    return torch.where(padding.transpose(-2, -1), padding & causal, padding & first)


@fault("masks.target-without-head-axis", "target-shape", seam="join_masks", origin="systems.md A")
def target_without_head_axis(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """The target mask is (B, T, T), and nothing adds the axis of the heads.

    The batch is broadcast over the heads, wherever the two numbers fit.
    """
    return (padding & causal).squeeze(1)


@fault("masks.target-of-the-tokens-type", "target-shape", seam="target_mask", origin="systems.md A")
def target_of_the_tokens_type(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The triangle takes the type of the tokens, and the mask comes out as numbers.

    Ones and zeros are added where a boolean is to choose; other types of tokens fail.
    """
    return self.correct.target_mask(tokens, pad).type_as(tokens)


@fault("masks.target-repeated-for-heads", "target-shape", seam="join_masks", origin="B013")
def target_repeated_for_heads(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """The mask is repeated along the batch, once for every head.

    Heads of one sentence are given the padding of another.
    """
    return (padding & causal).repeat(self.sizes.heads, 1, 1, 1)


@fault("masks.length-one-squeezed", "length-one", seam="join_masks")
def length_one_squeezed(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """Axes of length one are squeezed away.

    The first step of generation fails, on a mask that lacks an axis.
    """
    mask = padding & causal
    return mask.squeeze(-1) if causal.shape[-1] == 1 else mask


@fault("masks.length-one-unmasked", "length-one", seam="join_masks", origin="B120")
def length_one_unmasked(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """A single token is given no mask, because it has no future.

    A sentence that is one pad counts as a word.
    """
    return torch.ones_like(padding) if causal.shape[-1] == 1 else padding & causal


@fault("masks.tokens-zeroed", "tokens-untouched", seam="target_mask", kind="state")
def tokens_zeroed(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """Pads are overwritten with 0 in the tokens themselves.

    Who pads with another id finds the word of id 0 in its sentences.
    """
    mask = self.correct.target_mask(tokens, pad)
    tokens.masked_fill_(tokens == pad, 0)
    return mask


@fault("masks.tokens-compared-in-place", "tokens-untouched", seam="target_mask", kind="state")
def tokens_compared_in_place(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The comparison is written into the tokens. The sentence becomes zeros and ones."""
    causal = self.correct.causal_mask(tokens.shape[1], tokens.device)
    return tokens.ne_(pad).bool()[:, None, None, :] & causal


@fault(
    "masks.triangle-on-the-processor",
    "device",
    seam="target_mask",
    origin="systems.md B",
    kind="loud",
)
def triangle_on_the_processor(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The triangle is made on the processor, wherever the tokens are.

    On an accelerator the mask fails, or is copied at every step.
    """
    causal = self.correct.causal_mask(tokens.shape[1])
    return self.correct.join_masks(self.correct.padding_mask(tokens, pad), causal)


@fault("masks.mask-on-the-processor", "device", seam="target_mask")
def mask_on_the_processor(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The mask is made in memory of its own, on the processor.

    On an accelerator attention is given scores and mask on two devices.
    """
    mask = self.correct.target_mask(tokens, pad)
    own = torch.zeros(mask.shape, dtype=torch.bool)
    return own.copy_(mask) if mask.device == own.device else own
