"""Faults in the padding mask."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault(
    "masks.padding-inverted",
    "padding-keeps-exactly-real-tokens",
    seam="padding_mask",
    origin="B001",
)
def padding_inverted(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """True marks the padding, as in a library where it means blocked.

    The model attends to padding alone.
    """
    return ~self.correct.padding_mask(tokens, pad)


@fault(
    "masks.padding-never-found",
    "padding-keeps-exactly-real-tokens",
    seam="padding_mask",
    origin="B020",
)
def padding_never_found(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The padding mask hides nothing, as the pad id is found nowhere. Padding is attended to."""
    return torch.ones_like(self.correct.padding_mask(tokens, pad))


@fault("masks.first-pad-kept", "padding-keeps-exactly-real-tokens", seam="padding_mask")
def first_pad_kept(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The first padding token is kept, as an end of the sequence. Results depend on the padding."""
    pads = tokens == pad
    return (~pads | (pads.cumsum(1) == 1))[:, None, None, :]


@fault("masks.pad-id-zero", "any-pad-id", seam="padding_mask", origin="B019")
def pad_id_zero(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The pad id 0 is hard-coded. With another pad id padding is read and a token is hidden."""
    return self.correct.padding_mask(tokens, 0)


@fault("masks.pad-id-one", "any-pad-id", seam="padding_mask", origin="B019")
def pad_id_one(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The pad id 1 is hard-coded. With another pad id padding is read and a token is hidden."""
    return self.correct.padding_mask(tokens, 1)


@fault("masks.zero-hidden-too", "any-pad-id", seam="padding_mask")
def zero_hidden_too(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The id 0 is hidden besides the pad id. The token 0 is never read."""
    return self.correct.padding_mask(tokens, pad) & self.correct.padding_mask(tokens, 0)


@fault("masks.smaller-ids-hidden", "any-pad-id", seam="padding_mask")
def smaller_ids_hidden(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """Only ids above the pad id are kept. Every token with a smaller id is hidden."""
    return (tokens > pad)[:, None, None, :]


@fault("masks.padding-from-count", "pads-anywhere", seam="padding_mask")
def padding_from_count(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """As many keys are kept, from the first, as there are tokens.

    Padding on the left hides tokens.
    """
    count = (tokens != pad).sum(1, keepdim=True)
    place = torch.arange(tokens.shape[1], device=tokens.device)
    return (place < count)[:, None, None, :]


@fault("masks.padding-from-first-pad", "pads-anywhere", seam="padding_mask")
def padding_from_first_pad(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """Everything from the first padding on is hidden. Tokens after padding are lost."""
    return ((tokens == pad).cumsum(1) == 0)[:, None, None, :]


@fault("masks.padding-from-last-token", "pads-anywhere", seam="padding_mask")
def padding_from_last_token(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """Only padding after the last token is hidden. Padding on the left is read."""
    return ((tokens != pad).flip(1).cumsum(1).flip(1) > 0)[:, None, None, :]


@fault("masks.ids-through-bytes", "large-ids", seam="padding_mask", origin="systems.md B")
def ids_through_bytes(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """Token ids pass through a byte tensor before they are compared.

    Every 256th token of the vocabulary counts as padding.
    """
    return self.correct.padding_mask(tokens % 256, pad % 256)


@fault("masks.ids-through-int32", "large-ids", seam="padding_mask")
def ids_through_int32(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """Token ids are cut down to 32 bits before they are compared.

    Hashed ids that are a multiple of 2^32 away from the pad are hidden.
    """
    return self.correct.padding_mask(tokens.int(), int(torch.tensor(pad).int()))


@fault("masks.ids-through-floats", "large-ids", seam="padding_mask")
def ids_through_floats(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """Token ids are turned into float32 before they are compared.

    Above 2^24 the neighbour of the pad is hidden with it.
    """
    return self.correct.padding_mask(tokens.float(), pad)


@fault("masks.ids-through-half", "large-ids", seam="padding_mask")
def ids_through_half(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """Token ids pass through a tensor of the model's half precision.

    Above 256 neighbouring ids become one, and the pad's neighbour is hidden with it.
    """
    return (tokens.bfloat16() != torch.tensor(pad).bfloat16())[:, None, None, :]


@fault("masks.padding-on-queries", "padding-shape", seam="padding_mask", origin="B011")
def padding_on_queries(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The padding mask lies along the queries, (B, 1, S, 1). Real tokens attend to padding."""
    return self.correct.padding_mask(tokens, pad).transpose(-2, -1)


@fault(
    "masks.padding-without-head-axis", "padding-shape", seam="padding_mask", origin="systems.md A"
)
def padding_without_head_axis(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The padding mask is (B, 1, S), and nothing adds the axis of the heads.

    The batch is broadcast over the heads, wherever the two numbers fit.
    """
    return self.correct.padding_mask(tokens, pad).squeeze(1)


@fault("masks.padding-as-numbers", "padding-shape", seam="padding_mask", origin="B003")
def padding_as_numbers(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The padding mask holds ones and zeros. Added to the scores it hides nothing."""
    return self.correct.padding_mask(tokens, pad).float()


@fault("masks.padding-of-first-sentence", "batch-independence", seam="padding_mask")
def padding_of_first_sentence(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """The padding of the first sequence is used for all. Tokens of longer sequences are hidden."""
    return self.correct.padding_mask(tokens[:1].expand_as(tokens), pad)


@fault("masks.padding-of-any-sentence", "batch-independence", seam="padding_mask")
def padding_of_any_sentence(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """A key is hidden from the whole batch if one sequence has padding there.

    The batch is cut to its shortest sequence.
    """
    mask = self.correct.padding_mask(tokens, pad)
    return mask.all(0, keepdim=True).expand_as(mask)


@fault("masks.padding-shuffled-in-batch", "batch-independence", seam="padding_mask", origin="B013")
def padding_shuffled_in_batch(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """Masks are repeated in another order than the sequences.

    A sequence is read with the padding of its neighbour.
    """
    return self.correct.padding_mask(tokens, pad).roll(1, dims=0)
