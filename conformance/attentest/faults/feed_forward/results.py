"""Faults in the shape and the precision of the output."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("feed_forward.squeezed", "shapes", seam="feed_forward")
def squeezed(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Axes of length one are squeezed. A batch of one sample changes its shape."""
    return self.correct.feed_forward(module, x).squeeze()


@fault("feed_forward.always-float32", "shapes", seam="feed_forward")
def always_float32(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The output is float32, whatever came in. float64 loses half of its digits."""
    return self.correct.feed_forward(module, x).float()


@fault("feed_forward.float32-in-bfloat16", "float32", seam="activation")
def float32_in_bfloat16(self: Hooks, x: Tensor) -> Tensor:
    """The hidden layer of a float32 call is kept in bfloat16. Five digits are lost, silently."""
    correct = self.correct.activation(x)
    return correct.bfloat16().to(x.dtype) if x.dtype == torch.float32 else correct


@fault("feed_forward.float32-in-float16", "float32", seam="expand")
def float32_in_float16(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The first product of a float32 call is rounded to float16. Four digits are lost, silently."""
    correct = self.correct.expand(module, x)
    return correct.half().to(x.dtype) if x.dtype == torch.float32 else correct


@fault("feed_forward.overflow-in-half", "half-precision", seam="contract", origin="B126")
def overflow_in_half(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The hidden layer is scaled by 1e5 and back. float16 overflows on the way."""
    return self.correct.contract(module, (x * 1e5) / 1e5)


@fault("feed_forward.not-narrowed-back", "half-precision", seam="feed_forward")
def not_narrowed_back(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """A half-precision result is returned in float32. Later layers mix precisions."""
    correct = self.correct.feed_forward(module, x)
    return correct.float() if x.dtype in (torch.float16, torch.bfloat16) else correct
