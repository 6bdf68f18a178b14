"""Faults in what a position can see."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


@fault(
    "encoder.mask-for-the-first-layer",
    clause="encoder.formula",
    wrong="The mask is given to the first layer alone.",
    effect="From the second layer on, padding is attended to.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for number, layer in enumerate(module.layers):
        x = layer(x, mask if number == 0 else None)
    return self.finish_stack(module, x)


@fault(
    "encoder.mask-not-passed-on",
    clause="encoder.padding-invariance",
    wrong="The stack takes a mask and does not pass it to its layers.",
    effect="What a sentence means depends on the longest one in its batch.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.sound.encoder(module, x)


@fault(
    "encoder.mask-inverted",
    clause="encoder.padding-content",
    origin="B001",
    wrong="The mask is inverted: only padding is attended to.",
    effect="Every word sees nothing but padding.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    return None if mask is None else ~mask


@fault(
    "encoder.padding-guessed",
    clause="encoder.padding-content",
    origin="B020",
    wrong="Padding is guessed from rows of zeros, and the mask is ignored.",
    effect="Positions were added before, so no row is zero and nothing is hidden.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.sound.encoder_layer(module, x, (x.abs().sum(-1) != 0)[:, None, None, :])


@fault(
    "encoder.padding-mask-on-queries",
    clause="encoder.padding-content",
    origin="B011",
    wrong="A padding mask is put on the queries instead of the keys.",
    effect="Words attend to padding, and padding attends to nothing.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    return None if mask is None else mask.transpose(-1, -2)


@fault(
    "encoder.mask-tiled-by-heads",
    clause="encoder.mask-shapes",
    origin="B013",
    wrong="The mask is repeated for the heads in the order of heads, and read in that of samples.",
    effect="The heads of a sentence use the padding of another.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    if mask is None or mask.shape[0] == 1 or mask.shape[1] > 1:
        return mask
    batch, heads = mask.shape[0], self.sizes.heads
    return mask[:, 0].repeat(heads, 1, 1).unflatten(0, (batch, heads))


@fault(
    "encoder.first-row-of-the-mask",
    clause="encoder.mask-shapes",
    wrong="Of a mask over queries and keys, the first row is used for every query.",
    effect="A mask of any other kind than padding is not what was asked for.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    return None if mask is None else mask[..., :1, :]


@fault(
    "encoder.first-head-of-the-mask",
    clause="encoder.mask-shapes",
    wrong="Of a mask with an axis of heads, that of the first head is used for all.",
    effect="Heads that were given windows of their own share one.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    return None if mask is None else mask[:, :1]


@fault(
    "encoder.sees-itself-always",
    clause="encoder.mask-shapes",
    wrong="Every position may attend to itself, whatever the mask says.",
    effect="A trick against rows without a key lets hidden words through.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    if mask is None:
        return None
    own = torch.eye(mask.shape[-1], dtype=torch.bool, device=mask.device)
    return mask | own


@fault(
    "encoder.causal-by-default",
    clause="encoder.no-mask",
    wrong="Without a mask the layer makes a causal one.",
    effect="A word does not see the words after it, which the encoder is for.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    default = x.new_ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()[None, None]
    return self.sound.encoder_layer(module, x, default if mask is None else mask)


@fault(
    "encoder.no-mask-no-scale",
    clause="encoder.no-mask",
    wrong="The short cut for calls without a mask scales the queries a second time.",
    effect="Batches with and without padding go through two models.",
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    if module.step != "encoder_layer" or mask is not None:
        return self.sound.self_attend(module, x, mask)
    attend = self.sublayer_of(module, "self_attention")
    return attend(x * self.scale(self.head_width(), self.sizes.heads), x, x, mask)  # type: ignore[no-any-return]


@fault(
    "encoder.mask-shifted",
    clause="encoder.reach-is-the-mask",
    wrong="The mask is shifted by one key.",
    effect="It was made for a sentence with one more token at its start.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    return None if mask is None else mask.roll(1, dims=-1)


@fault(
    "encoder.keys-before-alone",
    clause="encoder.reach-is-the-mask",
    wrong="Of what the mask keeps, a position sees itself and what stands before it.",
    effect="The causal layer of a decoder is used as an encoder; half of the sentence is not read.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    if mask is None:
        return None
    before = mask & torch.ones(mask.shape[-1], mask.shape[-1], device=mask.device).tril().bool()
    # A position with nothing to see keeps what it had.
    return torch.where(before.any(dim=-1, keepdim=True), before, mask)


@fault(
    "encoder.first-mask-of-the-batch",
    clause="encoder.batch-independence",
    wrong="The mask of the first sentence serves the whole batch.",
    effect="Longer sentences are cut, shorter ones attend to padding.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.sound.encoder(module, x, None if mask is None else mask[:1])
