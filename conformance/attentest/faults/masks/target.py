"""Faults in the target mask: padding and causality together."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Seams


@fault(
    "masks.target-joined-by-or",
    clause="masks.target-is-both",
    wrong="Padding and causal mask are joined by or.",
    effect="Every real token of the future is seen, and every pad of the past.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    return padding | causal


@fault(
    "masks.target-without-padding",
    clause="masks.target-is-both",
    wrong="The target mask is the causal one alone.",
    effect="Pads among the target tokens are read.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    return causal.expand(len(padding), -1, -1, -1)


@fault(
    "masks.target-without-causal",
    clause="masks.target-is-both",
    origin="B110",
    wrong="The target mask is the padding mask alone.",
    effect="The decoder reads the words that it has to predict.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    return padding & torch.ones_like(causal)


@fault(
    "masks.target-with-source-pad",
    clause="masks.target-is-both",
    origin="B019",
    wrong="The target mask goes by the pad id of the source.",
    effect="Target pads are read, and a real target word is hidden.",
)
def target_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.target_mask(tokens, self.sizes.source_pad)


@fault(
    "masks.target-padding-on-queries",
    clause="masks.target-blocks-pad-keys",
    origin="systems.md B",
    wrong="The target's padding blocks the rows of the pads and not their columns.",
    effect="Real tokens read pads, and pads have no key at all.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    return padding.transpose(-2, -1) & causal


@fault(
    "masks.target-pads-see-themselves",
    clause="masks.target-blocks-pad-keys",
    wrong="The diagonal is kept for pads too, so that no row is empty.",
    effect="A pad reads itself, and its row depends on the pad's embedding.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    itself = torch.eye(causal.shape[-1], dtype=torch.bool, device=causal.device)
    return (padding & causal) | itself


@fault(
    "masks.target-pads-hidden-from-pads",
    clause="masks.target-blocks-pad-keys",
    wrong="Pads are hidden from the queries that are pads, and from no other.",
    effect="Every real token after a pad reads it.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    return (padding | padding.transpose(-2, -1)) & causal


@fault(
    "masks.target-pad-queries-blocked",
    clause="masks.target-keeps-pad-queries",
    origin="systems.md B",
    wrong="A query that is a pad is blocked beside the keys that are pads.",
    effect="Rows without a key become NaN or a mean, and reach gradients.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    return padding & padding.transpose(-2, -1) & causal


@fault(
    "masks.target-pad-queries-first-key-only",
    clause="masks.target-keeps-pad-queries",
    wrong="A query that is a pad is left the first key alone, to save its row from NaN.",
    effect="Pads read another sentence than a token in their place would.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    first = torch.zeros_like(causal)
    first[..., 0] = True
    return torch.where(padding.transpose(-2, -1), padding & causal, padding & first)


@fault(
    "masks.target-without-head-axis",
    clause="masks.target-shape",
    origin="systems.md A",
    wrong="The target mask is (B, T, T), and nothing adds the axis of the heads.",
    effect="The batch is broadcast over the heads, wherever the two numbers fit.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    return (padding & causal).squeeze(1)


@fault(
    "masks.target-of-the-tokens-type",
    clause="masks.target-shape",
    origin="systems.md A",
    wrong="The triangle takes the type of the tokens, and the mask comes out as numbers.",
    effect="Ones and zeros are added where a boolean is to choose; other types of tokens fail.",
)
def target_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.target_mask(tokens, pad).type_as(tokens)


@fault(
    "masks.target-repeated-for-heads",
    clause="masks.target-shape",
    origin="B013",
    wrong="The mask is repeated along the batch, once for every head.",
    effect="Heads of one sentence are given the padding of another.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    return (padding & causal).repeat(self.sizes.heads, 1, 1, 1)


@fault(
    "masks.length-one-squeezed",
    clause="masks.length-one",
    wrong="Axes of length one are squeezed away.",
    effect="The first step of generation fails, on a mask that lacks an axis.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    mask = padding & causal
    return mask.squeeze(-1) if causal.shape[-1] == 1 else mask


@fault(
    "masks.length-one-unmasked",
    clause="masks.length-one",
    origin="B120",
    wrong="A single token is given no mask, because it has no future.",
    effect="A sentence that is one pad counts as a word.",
)
def join_masks(self: Seams, padding: Tensor, causal: Tensor) -> Tensor:
    return torch.ones_like(padding) if causal.shape[-1] == 1 else padding & causal


@fault(
    "masks.tokens-zeroed",
    clause="masks.tokens-untouched",
    wrong="Pads are overwritten with 0 in the tokens themselves.",
    effect="Who pads with another id finds the word of id 0 in its sentences.",
    kind="state",
)
def target_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    mask = self.sound.target_mask(tokens, pad)
    tokens.masked_fill_(tokens == pad, 0)
    return mask


@fault(
    "masks.tokens-compared-in-place",
    clause="masks.tokens-untouched",
    wrong="The comparison is written into the tokens.",
    effect="The sentence becomes zeros and ones.",
    kind="state",
)
def target_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    causal = self.sound.causal_mask(tokens.shape[1], tokens.device)
    return tokens.ne_(pad).bool()[:, None, None, :] & causal


@fault(
    "masks.triangle-on-the-processor",
    clause="masks.device",
    origin="systems.md B",
    wrong="The triangle is made on the processor, wherever the tokens are.",
    effect="On an accelerator the mask fails, or is copied at every step.",
    kind="loud",
)
def target_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    causal = self.sound.causal_mask(tokens.shape[1])
    return self.sound.join_masks(self.sound.padding_mask(tokens, pad), causal)


@fault(
    "masks.mask-on-the-processor",
    clause="masks.device",
    wrong="The mask is made in memory of its own, on the processor.",
    effect="On an accelerator attention is given scores and mask on two devices.",
)
def target_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    mask = self.sound.target_mask(tokens, pad)
    own = torch.zeros(mask.shape, dtype=torch.bool)
    return own.copy_(mask) if mask.device == own.device else own
