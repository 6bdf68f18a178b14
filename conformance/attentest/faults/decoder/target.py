"""Faults in the mask of the target."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault("decoder.target-mask-ignored", "causality", seam="self_mask", origin="C", in_layer=True)
def target_mask_ignored(self: Hooks, source_mask: Mask, target_mask: Mask) -> Mask:
    """Self-attention gets no mask. Every step reads its own answer."""
    return None


@fault("decoder.one-step-ahead", "causality", seam="self_mask", origin="B016", in_layer=True)
def one_step_ahead(self: Hooks, source_mask: Mask, target_mask: Mask) -> Mask:
    """The causal triangle has one diagonal too many. Every step reads its own answer."""
    if target_mask is None:
        return None
    ahead = torch.ones(target_mask.shape[-1], target_mask.shape[-1], device=target_mask.device)
    return target_mask | (ahead.triu(1).tril(1) > 0)


@fault("decoder.triangle-transposed", "causality", seam="self_mask", origin="B014", in_layer=True)
def triangle_transposed(self: Hooks, source_mask: Mask, target_mask: Mask) -> Mask:
    """The mask of the target is transposed: the steps to come are seen, not those before.

    A very low loss in training, and nonsense afterwards.
    """
    return None if target_mask is None else target_mask.transpose(-1, -2)


@fault("decoder.mask-not-for-later-layers", "causality", seam="decoder")
def mask_not_for_later_layers(
    self: Hooks,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    """Only the first layer gets the target mask. Later layers read the answers."""
    for number, layer in enumerate(module.layers):
        x = layer(x, memory, source_mask, target_mask if number == 0 else None)
    return self.finish_stack(module, x)


@fault("decoder.gradient-from-the-future", "causality-by-gradient", seam="decoder", kind="gradient")
def gradient_from_the_future(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """The mean of all steps is added and its detached copy subtracted.

    Steps are trained through later ones.
    """
    mean = x.mean(dim=1, keepdim=True)
    states = self.correct.decoder(module, x, memory, *masks)
    return states + (mean - mean.detach())


@fault(
    "decoder.masked-late",
    "causality-by-gradient",
    seam="self_attend",
    kind="gradient",
    in_layer=True,
)
def masked_late(self: Hooks, module: Node, x: Tensor, mask: Mask) -> Tensor:
    """Masked states replace unmasked ones by value alone.

    The output is right; gradients ignore the mask.
    """
    masked = self.correct.self_attend(module, x, mask)
    if module.step != "decoder_layer":
        return masked
    free = self.correct.self_attend(module, x, None)
    return free - free.detach() + masked.detach()


@fault(
    "decoder.padding-rows-not-columns",
    "target-padding",
    seam="self_mask",
    origin="B",
    in_layer=True,
)
def padding_rows_not_columns(self: Hooks, source_mask: Mask, target_mask: Mask) -> Mask:
    """Target padding hides rows, not columns. Padding in the target is read."""
    if target_mask is None:
        return None
    real = target_mask.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    # The rows of padding keep their mask, so that each row has a key.
    causal = torch.ones_like(target_mask).tril()
    return torch.where(real, causal, target_mask)


@fault("decoder.causal-alone", "target-padding", seam="self_mask", in_layer=True)
def causal_alone(self: Hooks, source_mask: Mask, target_mask: Mask) -> Mask:
    """The target mask is replaced by a causal one. Padding in the target is read."""
    return None if target_mask is None else torch.ones_like(target_mask).tril()


@fault("decoder.causal-by-default", "no-masks", seam="self_attend")
def causal_by_default(self: Hooks, module: Node, x: Tensor, mask: Mask) -> Tensor:
    """Without a target mask the layer makes a causal one. Steps are hidden against the call."""
    if module.step != "decoder_layer":
        return self.correct.self_attend(module, x, mask)
    default = x.new_ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()[None, None]
    return self.correct.self_attend(module, x, default if mask is None else mask)
