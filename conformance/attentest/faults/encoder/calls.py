"""Faults in precisions, shapes and side effects."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault("encoder.float32-rounded-at-the-end", "float32", seam="encoder")
def float32_rounded_at_the_end(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """Outputs in float32 are rounded to bfloat16 at the end.

    Two digits where seven were asked for; float64 does not show it.
    """
    states = self.correct.encoder(module, x, mask)
    return states.bfloat16().float() if states.dtype == torch.float32 else states


@fault("encoder.scale-beyond-half", "half-precision", seam="feed", origin="B126", in_layer=True)
def scale_beyond_half(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The feed-forward network's output is scaled up by 2 to the 16 and down again.

    Exact in wide formats; infinite in float16.
    """
    fed = self.correct.feed(module, x)
    return fed * 2.0**16 / 2.0**16 if module.step == "encoder_layer" else fed


@fault("encoder.batch-of-one-squeezed", "shapes", seam="encoder", origin="B036")
def batch_of_one_squeezed(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """Axes of length one are squeezed. A last batch of one sample fails, or broadcasts."""
    return self.correct.encoder(module, x, mask).squeeze()


@fault("encoder.always-float32", "shapes", seam="encoder")
def always_float32(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The output is always float32. A model in float64 or bfloat16 fails after the encoder."""
    return self.correct.encoder(module, x, mask).float()


@fault("encoder.sum-in-place", "input-untouched", seam="encoder", origin="B077", kind="state")
def sum_in_place(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The first sublayer's output is added in place. The caller's tensor is overwritten."""
    states = self.correct.encoder(module, x, mask)
    with torch.no_grad():
        x.add_(states.detach())
    return states


@fault("encoder.mask-in-place", "input-untouched", seam="encoder", kind="state")
def mask_in_place(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The mask is inverted in place and stays so. The decoder gets the inverted mask."""
    states = self.correct.encoder(module, x, mask)
    if mask is not None:
        mask.logical_not_()
    return states
