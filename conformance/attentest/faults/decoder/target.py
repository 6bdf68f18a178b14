"""Faults in what a step may see of the target."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


@fault(
    "decoder.target-mask-ignored",
    clause="decoder.causality",
    origin="C",
    wrong="Self-attention is never given its mask.",
    effect="Every step reads its own answer; the loss falls to nothing.",
    components=("decoder_layer",),
)
def self_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    return None


@fault(
    "decoder.one-step-ahead",
    clause="decoder.causality",
    origin="B016",
    wrong="The causal triangle has one diagonal too many.",
    effect="Every step reads its own answer, and nothing beyond it.",
    components=("decoder_layer",),
)
def self_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    if target_mask is None:
        return None
    ahead = torch.ones(target_mask.shape[-1], target_mask.shape[-1], device=target_mask.device)
    return target_mask | (ahead.triu(1).tril(1) > 0)


@fault(
    "decoder.triangle-transposed",
    clause="decoder.causality",
    origin="B014",
    wrong="The mask of the target is transposed: the steps to come are seen, not those before.",
    effect="A very low loss in training, and nonsense afterwards.",
    components=("decoder_layer",),
)
def self_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    return None if target_mask is None else target_mask.transpose(-1, -2)


@fault(
    "decoder.mask-not-for-later-layers",
    clause="decoder.causality",
    wrong="The target mask is given to the first layer alone.",
    effect="From the second layer on, every step reads its own answer.",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    for number, layer in enumerate(module.layers):
        x = layer(x, memory, source_mask, target_mask if number == 0 else None)
    return self.finish_stack(module, x)


@fault(
    "decoder.gradient-from-the-future",
    clause="decoder.causality-by-gradient",
    wrong="The mean of all steps is added and its detached copy taken away.",
    effect="The output is right; each step is trained through the steps that it must not see.",
    kind="gradient",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    mean = x.mean(dim=1, keepdim=True)
    states = self.sound.decoder(module, x, memory, source_mask, target_mask)
    return states + (mean - mean.detach())


@fault(
    "decoder.masked-late",
    clause="decoder.causality-by-gradient",
    wrong="The masked states are put in place of unmasked ones by their values alone.",
    effect="The output is right; the gradient is that of a decoder without a mask.",
    kind="gradient",
    components=("decoder_layer",),
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    masked = self.sound.self_attend(module, x, mask)
    if module.step != "decoder_layer":
        return masked
    free = self.sound.self_attend(module, x, None)
    return free - free.detach() + masked.detach()


@fault(
    "decoder.padding-rows-not-columns",
    clause="decoder.target-padding",
    origin="B",
    wrong="The padding in the target mask is put on the rows of pads and not on their columns.",
    effect="Pads of the target are attended to.",
    components=("decoder_layer",),
)
def self_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    if target_mask is None:
        return None
    real = target_mask.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    # The rows of pads keep their mask, so that no row is left without a key.
    causal = torch.ones_like(target_mask).tril()
    return torch.where(real, causal, target_mask)


@fault(
    "decoder.causal-alone",
    clause="decoder.target-padding",
    wrong="Of the target mask only its shape is used: the decoder makes its own triangle.",
    effect="Pads of the target are attended to.",
    components=("decoder_layer",),
)
def self_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    return None if target_mask is None else torch.ones_like(target_mask).tril()


@fault(
    "decoder.causal-by-default",
    clause="decoder.no-masks",
    wrong="Without a target mask the layer makes a causal one.",
    effect="Steps that the caller wanted seen are hidden.",
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    if module.step != "decoder_layer":
        return self.sound.self_attend(module, x, mask)
    default = x.new_ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()[None, None]
    return self.sound.self_attend(module, x, default if mask is None else mask)
