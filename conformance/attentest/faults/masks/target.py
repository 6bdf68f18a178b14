"""Faults in the target mask: padding and causality together."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("masks.target-joined-by-or", "target-is-both", seam="join_masks")
def target_joined_by_or(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """Padding mask and causal mask are joined by or. The future and past padding are read."""
    return padding | causal


@fault("masks.target-without-padding", "target-is-both", seam="join_masks")
def target_without_padding(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """The target mask is the causal mask alone. Padding in the target is read."""
    return causal.expand(len(padding), -1, -1, -1)


@fault("masks.target-without-causal", "target-is-both", seam="join_masks", origin="B110")
def target_without_causal(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """The target mask is the padding mask alone. The decoder reads the tokens to predict."""
    return padding & torch.ones_like(causal)


@fault("masks.target-with-source-pad", "target-is-both", seam="target_mask", origin="B019")
def target_with_source_pad(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The target mask uses the pad id of the source. Target padding is read."""
    return self.correct.target_mask(tokens, self.sizes.source_pad)


@fault(
    "masks.target-padding-on-queries",
    "target-blocks-pad-keys",
    seam="join_masks",
    origin="systems.md B",
)
def target_padding_on_queries(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """The target's padding blocks rows, not columns. Real tokens read padding."""
    return padding.transpose(-2, -1) & causal


@fault("masks.target-pads-see-themselves", "target-blocks-pad-keys", seam="join_masks")
def target_pads_see_themselves(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """The diagonal is kept for padding too, so that no row is empty.

    A padding token reads itself.
    """
    itself = torch.eye(causal.shape[-1], dtype=torch.bool, device=causal.device)
    return (padding & causal) | itself


@fault("masks.target-pads-hidden-from-pads", "target-blocks-pad-keys", seam="join_masks")
def target_pads_hidden_from_pads(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """Padding is hidden from padding queries alone. Tokens after padding read it."""
    return (padding | padding.transpose(-2, -1)) & causal


@fault(
    "masks.target-pad-queries-blocked",
    "target-keeps-pad-queries",
    seam="join_masks",
    origin="systems.md B",
)
def target_pad_queries_blocked(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """Padding is blocked as a query, not only as a key. Rows without a key become NaN or a mean."""
    return padding & padding.transpose(-2, -1) & causal


@fault("masks.target-pad-queries-first-key-only", "target-keeps-pad-queries", seam="join_masks")
def target_pad_queries_first_key_only(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """A padding query keeps the first key alone, to avoid a row of NaN.

    Its row is not that of a token in its place.
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
    """The mask has the dtype of the tokens. Ones and zeros are added where a boolean is needed."""
    return self.correct.target_mask(tokens, pad).type_as(tokens)


@fault("masks.target-repeated-for-heads", "target-shape", seam="join_masks", origin="B013")
def target_repeated_for_heads(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """The mask is repeated along the batch, once for every head.

    Heads of one sequence are given the padding of another.
    """
    return (padding & causal).repeat(self.sizes.heads, 1, 1, 1)


@fault("masks.length-one-squeezed", "length-one", seam="join_masks")
def length_one_squeezed(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """Axes of length one are squeezed. The first step of generation fails."""
    mask = padding & causal
    return mask.squeeze(-1) if causal.shape[-1] == 1 else mask


@fault("masks.length-one-unmasked", "length-one", seam="join_masks", origin="B120")
def length_one_unmasked(self: Hooks, padding: Tensor, causal: Tensor) -> Tensor:
    """A single token gets no mask, as it has no future. One padding token counts as a token."""
    return torch.ones_like(padding) if causal.shape[-1] == 1 else padding & causal


@fault("masks.tokens-zeroed", "tokens-untouched", seam="target_mask", kind="state")
def tokens_zeroed(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """Padding is overwritten with 0 in the tokens themselves. The caller's tokens change."""
    mask = self.correct.target_mask(tokens, pad)
    tokens.masked_fill_(tokens == pad, 0)
    return mask


@fault("masks.tokens-compared-in-place", "tokens-untouched", seam="target_mask", kind="state")
def tokens_compared_in_place(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The comparison is written into the tokens. The tokens become zeros and ones."""
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
    """The triangle is always made on the CPU. On an accelerator the mask fails."""
    causal = self.correct.causal_mask(tokens.shape[1])
    return self.correct.join_masks(self.correct.padding_mask(tokens, pad), causal)


@fault("masks.mask-on-the-processor", "device", seam="target_mask")
def mask_on_the_processor(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The mask is always made on the CPU. On an accelerator scores and mask are on two devices."""
    mask = self.correct.target_mask(tokens, pad)
    own = torch.zeros(mask.shape, dtype=torch.bool)
    return own.copy_(mask) if mask.device == own.device else own


@fault("masks.target-cached-by-shape", "target-is-both", seam="target_mask", kind="state")
def target_cached_by_shape(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The mask is kept for the next call of its shape. Later targets get earlier padding."""
    key = f"target {tuple(tokens.shape)} {pad}"
    if key not in self.memory:
        self.memory[key] = self.correct.target_mask(tokens, pad)
    mask: Tensor = self.memory[key]
    return mask.clone()
