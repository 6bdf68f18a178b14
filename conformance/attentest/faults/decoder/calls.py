"""Faults in precisions, shapes and side effects."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault("decoder.single-step-squeezed", "shapes", seam="decoder_layer", origin="B036")
def single_step_squeezed(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """The axis of a single step is squeezed. The first step of decoding fails, or broadcasts."""
    return self.correct.decoder_layer(module, x, memory, *masks).squeeze(1)


@fault("decoder.always-float32", "shapes", seam="decoder_layer")
def always_float32(self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask) -> Tensor:
    """The output is always float32. A model in float64 or bfloat16 fails after the decoder."""
    return self.correct.decoder_layer(module, x, memory, *masks).float()


@fault("decoder.memory-in-bfloat16", "float32", seam="decoder")
def memory_in_bfloat16(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """A float32 memory is kept in bfloat16. Two digits are right, not seven."""
    if memory.dtype == torch.float32:
        memory = memory.bfloat16().float()
    return self.correct.decoder(module, x, memory, *masks)


@fault("decoder.scale-beyond-half", "half-precision", seam="cross_attend", origin="B126")
def scale_beyond_half(self: Hooks, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """Values from the memory are scaled up by 2 to the 16 and down again.

    Exact in wide formats; infinite in float16.
    """
    return self.correct.cross_attend(module, x, memory, mask) * 2.0**16 / 2.0**16


@fault("decoder.memory-normed-in-place", "input-untouched", seam="decoder", kind="state")
def memory_normed_in_place(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """The memory is centred in place. The next layer and the next step read another memory."""
    states = self.correct.decoder(module, x, memory, *masks)
    with torch.no_grad():
        memory.sub_(memory.mean(dim=-1, keepdim=True))
    return states


@fault("decoder.mask-in-place", "input-untouched", seam="decoder", kind="state")
def mask_in_place(
    self: Hooks,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    """The target mask is inverted in place for code that wants the opposite.

    The next layer, and the next batch, are given the inverted mask.
    """
    states = self.correct.decoder(module, x, memory, source_mask, target_mask)
    if target_mask is not None:
        target_mask.logical_not_()
    return states
