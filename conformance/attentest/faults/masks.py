"""Faults of the chapter `masks`: each function overrides the seam that it is named after."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Seams

Device = torch.device | None


# Padding


@fault(
    "masks.padding-inverted",
    clause="masks.padding-keeps-exactly-real-tokens",
    origin="B001",
    wrong="True stands on the pads, as in a library that means blocked by it.",
    effect="The model attends to padding alone, and still trains.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return ~self.sound.padding_mask(tokens, pad)


@fault(
    "masks.padding-never-found",
    clause="masks.padding-keeps-exactly-real-tokens",
    origin="B020",
    wrong="Pads are looked for where they no longer show, and none is found.",
    effect="Every sentence reads the padding of the longest one beside it.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return torch.ones_like(self.sound.padding_mask(tokens, pad))


@fault(
    "masks.first-pad-kept",
    clause="masks.padding-keeps-exactly-real-tokens",
    wrong="The first pad of a sentence is kept, as if it closed the sentence.",
    effect="One pad is read, so that a sentence depends on whether it was padded at all.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    pads = tokens == pad
    return (~pads | (pads.cumsum(1) == 1))[:, None, None, :]


@fault(
    "masks.pad-id-zero",
    clause="masks.any-pad-id",
    origin="B019",
    wrong="The pad id 0 is written into the code.",
    effect="Where the pad is another id, pads are read and a real word is hidden.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.padding_mask(tokens, 0)


@fault(
    "masks.pad-id-one",
    clause="masks.any-pad-id",
    origin="B019",
    wrong="The pad id 1 is written into the code.",
    effect="Where the pad is another id, pads are read and a real word is hidden.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.padding_mask(tokens, 1)


@fault(
    "masks.zero-hidden-too",
    clause="masks.any-pad-id",
    wrong="The id 0 is hidden beside the pad.",
    effect="The word with the id 0 is never read, where the pad is another one.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.padding_mask(tokens, pad) & self.sound.padding_mask(tokens, 0)


@fault(
    "masks.smaller-ids-hidden",
    clause="masks.any-pad-id",
    wrong="Ids above the pad are kept, in the belief that the pad is the smallest.",
    effect="Every word with an id below the pad's is hidden.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return (tokens > pad)[:, None, None, :]


@fault(
    "masks.padding-from-count",
    clause="masks.pads-anywhere",
    wrong="The mask keeps as many keys, from the first, as there are real tokens.",
    effect="Right for padding at the end alone: with padding on the left the words are cut off.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    count = (tokens != pad).sum(1, keepdim=True)
    place = torch.arange(tokens.shape[1], device=tokens.device)
    return (place < count)[:, None, None, :]


@fault(
    "masks.padding-from-first-pad",
    clause="masks.pads-anywhere",
    wrong="Everything from the first pad on is hidden.",
    effect="Real tokens behind a pad are lost.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return ((tokens == pad).cumsum(1) == 0)[:, None, None, :]


@fault(
    "masks.padding-from-last-token",
    clause="masks.pads-anywhere",
    wrong="Only the pads behind the last real token are hidden.",
    effect="Padding on the left, or between two sentences, is read.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return ((tokens != pad).flip(1).cumsum(1).flip(1) > 0)[:, None, None, :]


@fault(
    "masks.ids-through-bytes",
    clause="masks.large-ids",
    origin="systems.md B",
    wrong="Token ids pass through a byte tensor before they are compared.",
    effect="Every 256th word of the vocabulary counts as padding.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.padding_mask(tokens % 256, pad % 256)


@fault(
    "masks.ids-through-int32",
    clause="masks.large-ids",
    wrong="Token ids are cut down to 32 bits before they are compared.",
    effect="Hashed ids that are a multiple of 2^32 away from the pad are hidden.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.padding_mask(tokens.int(), int(torch.tensor(pad).int()))


@fault(
    "masks.ids-through-floats",
    clause="masks.large-ids",
    wrong="Token ids are turned into float32 before they are compared.",
    effect="Above 2^24 the neighbour of the pad is hidden with it.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.padding_mask(tokens.float(), pad)


@fault(
    "masks.ids-through-half",
    clause="masks.large-ids",
    wrong="Token ids pass through a tensor of the model's half precision.",
    effect="Above 256 neighbouring ids become one, and the pad's neighbour is hidden with it.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return (tokens.bfloat16() != torch.tensor(pad).bfloat16())[:, None, None, :]


@fault(
    "masks.padding-on-queries",
    clause="masks.padding-shape",
    origin="B011",
    wrong="The padding mask lies along the queries, (B, 1, S, 1).",
    effect="Real tokens attend to pads, and the pads' own rows are blocked.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.padding_mask(tokens, pad).transpose(-2, -1)


@fault(
    "masks.padding-without-head-axis",
    clause="masks.padding-shape",
    origin="systems.md A",
    wrong="The padding mask is (B, 1, S), and nothing adds the axis of the heads.",
    effect="The batch is broadcast over the heads, wherever the two numbers fit.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.padding_mask(tokens, pad).squeeze(1)


@fault(
    "masks.padding-as-numbers",
    clause="masks.padding-shape",
    origin="B003",
    wrong="The padding mask holds ones and zeros.",
    effect="Handed on as numbers to add, it hides nothing.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.padding_mask(tokens, pad).float()


@fault(
    "masks.padding-of-first-sentence",
    clause="masks.batch-independence",
    wrong="The padding of the first sentence is used for all.",
    effect="Words of longer sentences are hidden, pads of shorter ones are read.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.padding_mask(tokens[:1].expand_as(tokens), pad)


@fault(
    "masks.padding-of-any-sentence",
    clause="masks.batch-independence",
    wrong="A key is hidden from the whole batch where any sentence has a pad.",
    effect="The longest sentence is cut to the length of the shortest.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    mask = self.sound.padding_mask(tokens, pad)
    return mask.all(0, keepdim=True).expand_as(mask)


@fault(
    "masks.padding-shuffled-in-batch",
    clause="masks.batch-independence",
    origin="B013",
    wrong="Masks are repeated in another order than the sentences.",
    effect="A sentence is read with the padding of its neighbour.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    return self.sound.padding_mask(tokens, pad).roll(1, dims=0)


# Causal


@fault(
    "masks.causal-transposed",
    clause="masks.causal-keeps-past",
    origin="B014",
    wrong="The upper triangle is kept.",
    effect="A position sees the present and the future only: low loss, nonsense when generating.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return self.sound.causal_mask(length, device).transpose(-2, -1)


@fault(
    "masks.causal-inverted",
    clause="masks.causal-keeps-past",
    origin="B002",
    wrong="True stands where a key is blocked, above the diagonal.",
    effect="Each position sees only the future, and the last one nothing.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return ~self.sound.causal_mask(length, device)


@fault(
    "masks.causal-band",
    clause="masks.causal-keeps-past",
    wrong="Only the last few keys are kept, as in an attention with a window.",
    effect="Long sentences lose their beginning; short ones do not show it.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return self.sound.causal_mask(length, device).triu(-7)


@fault(
    "masks.causal-first-key-hidden",
    clause="masks.causal-keeps-past",
    wrong="The token that starts a sentence is hidden from all but itself.",
    effect="What the decoder stores at its first position is never read.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    mask = self.sound.causal_mask(length, device).clone()
    mask[..., 1:, 0] = False
    return mask


@fault(
    "masks.causal-diagonal-hidden",
    clause="masks.causal-keeps-diagonal",
    origin="B015",
    wrong="The diagonal is blocked with what lies above it.",
    effect="A token cannot see itself, and the first query has no key: NaN or a mean.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return self.sound.causal_mask(length, device).tril(-1)


@fault(
    "masks.causal-diagonal-hidden-but-first",
    clause="masks.causal-keeps-diagonal",
    origin="B015",
    wrong="The diagonal is blocked, and the first row patched to get rid of the NaN.",
    effect="No token but the first sees itself.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    mask = self.sound.causal_mask(length, device).tril(-1)
    mask[..., 0, 0] = True
    return mask


@fault(
    "masks.causal-one-too-far",
    clause="masks.causal-blocks-future",
    origin="B016",
    wrong="The triangle is one diagonal too large.",
    effect="Each position reads its own label: a loss near 0, and generation fails.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril(1)


@fault(
    "masks.causal-missing",
    clause="masks.causal-blocks-future",
    origin="B110",
    wrong="Nothing is hidden.",
    effect="The decoder reads the words that it has to predict.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device)


@fault(
    "masks.causal-in-blocks",
    clause="masks.causal-blocks-future",
    wrong="Positions are compared after a division, so that neighbours form blocks.",
    effect="Within a block every position sees the next ones.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    block = torch.arange(length, device=device) // 2
    return (block[:, None] >= block)[None, None]


@fault(
    "masks.causal-additive",
    clause="masks.causal-shape",
    origin="B003",
    wrong="The mask holds 0 where a key is kept and minus infinity above.",
    effect="Read as a boolean it keeps exactly what should be hidden.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return torch.full((1, 1, length, length), -math.inf, device=device).triu(1)


@fault(
    "masks.causal-plus-infinity",
    clause="masks.causal-shape",
    origin="systems.md C",
    wrong="The mask holds 0 where a key is kept and plus infinity above.",
    effect="Added to the scores it makes everything NaN.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return torch.full((1, 1, length, length), math.inf, device=device).triu(1)


@fault(
    "masks.causal-as-numbers",
    clause="masks.causal-shape",
    origin="B003",
    wrong="The mask holds ones and zeros.",
    effect="Handed on as numbers to add, it is a bump of 1 and hides nothing.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return self.sound.causal_mask(length, device).float()


@fault(
    "masks.causal-without-axes",
    clause="masks.causal-shape",
    origin="systems.md B",
    wrong="The mask is (T, T), without the axes of batch and heads.",
    effect="Code that takes the length from the first axis, or indexes samples, reads it wrongly.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return self.sound.causal_mask(length, device)[0, 0]


@fault(
    "masks.causal-kept-from-first-call",
    clause="masks.causal-any-order",
    wrong="The mask of the first call is handed out for ever.",
    effect="The second batch, of another length, fails or is broadcast.",
    kind="state",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    kept: Tensor = self.memory.setdefault("causal", self.sound.causal_mask(length, device))
    return kept


@fault(
    "masks.causal-kept-while-it-fits",
    clause="masks.causal-any-order",
    wrong="The longest mask is kept, and its last rows are cut out for shorter sentences.",
    effect="A short sentence after a long one sees its future.",
    kind="state",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    kept: Tensor = self.memory.get("causal", torch.zeros(0))
    if kept.shape[-1] < length:
        kept = self.memory["causal"] = self.sound.causal_mask(length, device)
    return kept[..., kept.shape[-1] - length :, :length]


@fault(
    "masks.causal-handed-out-to-write",
    clause="masks.causal-any-order",
    wrong="Masks are kept by length, and the caller is given the kept one itself.",
    effect="What one caller writes into its mask, every later call of that length receives.",
    kind="state",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    fresh = self.sound.causal_mask(length, device)
    kept: Tensor = self.memory.setdefault(f"causal {length}", fresh)
    return kept


# Target


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
