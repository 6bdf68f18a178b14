"""Faults in the mask of the encoder."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault("encoder.mask-for-the-first-layer", "formula", seam="encoder")
def mask_for_the_first_layer(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The mask is given to the first layer alone. Later layers attend to padding."""
    for number, layer in enumerate(module.layers):
        x = layer(x, mask if number == 0 else None)
    return self.finish_stack(module, x)


@fault("encoder.mask-not-passed-on", "padding-invariance", seam="encoder")
def mask_not_passed_on(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The stack does not pass its mask to the layers. Results depend on the padding."""
    return self.correct.encoder(module, x)


@fault("encoder.mask-inverted", "padding-content", seam="encoder_mask", origin="B001")
def mask_inverted(self: Hooks, mask: Mask) -> Mask:
    """The mask is inverted. Every token sees nothing but padding."""
    return None if mask is None else ~mask


@fault("encoder.padding-guessed", "padding-content", seam="encoder_layer", origin="B020")
def padding_guessed(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """Padding is guessed from rows of zeros, and the mask is ignored.

    Positions were added before, so no row is zero and nothing is hidden.
    """
    return self.correct.encoder_layer(module, x, (x.abs().sum(-1) != 0)[:, None, None, :])


@fault("encoder.padding-mask-on-queries", "padding-content", seam="encoder_mask", origin="B011")
def padding_mask_on_queries(self: Hooks, mask: Mask) -> Mask:
    """A padding mask is put on the queries, not on the keys. Tokens attend to padding."""
    return None if mask is None else mask.transpose(-1, -2)


@fault("encoder.mask-tiled-by-heads", "mask-shapes", seam="encoder_mask", origin="B013")
def mask_tiled_by_heads(self: Hooks, mask: Mask) -> Mask:
    """The mask is repeated for the heads in the order of heads, and read in that of samples.

    The heads of a sequence use the padding of another.
    """
    if mask is None or mask.shape[0] == 1 or mask.shape[1] > 1:
        return mask
    batch, heads = mask.shape[0], self.sizes.heads
    return mask[:, 0].repeat(heads, 1, 1).reshape(batch, heads, *mask.shape[2:])


@fault("encoder.first-row-of-the-mask", "mask-shapes", seam="encoder_mask")
def first_row_of_the_mask(self: Hooks, mask: Mask) -> Mask:
    """Of a mask over queries and keys, the first row is used for every query.

    A mask of any other kind than padding is not what was asked for.
    """
    return None if mask is None else mask[..., :1, :]


@fault("encoder.first-head-of-the-mask", "mask-shapes", seam="encoder_mask")
def first_head_of_the_mask(self: Hooks, mask: Mask) -> Mask:
    """Of a mask with an axis of heads, that of the first head is used for all.

    Heads that were given windows of their own share one.
    """
    return None if mask is None else mask[:, :1]


@fault("encoder.sees-itself-always", "mask-shapes", seam="encoder_mask")
def sees_itself_always(self: Hooks, mask: Mask) -> Mask:
    """Every position may attend to itself, whatever the mask says. Hidden tokens are read."""
    if mask is None:
        return None
    own = torch.eye(mask.shape[-1], dtype=torch.bool, device=mask.device)
    return mask | own


@fault("encoder.causal-by-default", "no-mask", seam="encoder_layer")
def causal_by_default(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """Without a mask the layer makes a causal one. Tokens do not see the tokens after them."""
    default = x.new_ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()[None, None]
    return self.correct.encoder_layer(module, x, default if mask is None else mask)


@fault("encoder.no-mask-no-scale", "no-mask", seam="self_attend")
def no_mask_no_scale(self: Hooks, module: Node, x: Tensor, mask: Mask) -> Tensor:
    """The short cut for calls without a mask scales the queries a second time.

    Batches with and without padding go through two models.
    """
    if module.step != "encoder_layer" or mask is not None:
        return self.correct.self_attend(module, x, mask)
    attend = self.sublayer_of(module, "self_attention")
    return attend(x * self.scale(self.head_width(), self.sizes.heads), x, x, mask)


@fault("encoder.mask-shifted", "reach-is-the-mask", seam="encoder_mask")
def mask_shifted(self: Hooks, mask: Mask) -> Mask:
    """The mask is shifted by one key. It fits a sequence with one more token at its start."""
    return None if mask is None else mask.roll(1, dims=-1)


@fault("encoder.keys-before-alone", "reach-is-the-mask", seam="encoder_mask")
def keys_before_alone(self: Hooks, mask: Mask) -> Mask:
    """A position sees itself and the kept keys before it alone.

    Half of the sequence is not read.
    """
    if mask is None:
        return None
    before = mask & torch.ones(mask.shape[-1], mask.shape[-1], device=mask.device).tril().bool()
    # A position without a key left keeps its mask.
    return torch.where(before.any(dim=-1, keepdim=True), before, mask)


@fault("encoder.first-mask-of-the-batch", "batch-independence", seam="encoder")
def first_mask_of_the_batch(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The mask of the first sample is used for all. Longer sequences are cut."""
    return self.correct.encoder(module, x, None if mask is None else mask[:1])
