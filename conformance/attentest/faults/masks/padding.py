"""Faults in the padding mask."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Seams


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
