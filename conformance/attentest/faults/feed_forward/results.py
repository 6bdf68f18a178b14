"""Faults in what is returned: shapes and precisions."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault("feed_forward.squeezed", "shapes", seam="feed_forward")
def squeezed(self: Seams, module: Node, x: Tensor) -> Tensor:
    """Axes of length one are dropped from the output.

    A batch of one, or a sentence of one word, changes its shape.
    """
    return self.sound.feed_forward(module, x).squeeze()


@fault("feed_forward.always-float32", "shapes", seam="feed_forward")
def always_float32(self: Seams, module: Node, x: Tensor) -> Tensor:
    """The output is float32, whatever came in. float64 loses half of its digits."""
    return self.sound.feed_forward(module, x).float()


@fault("feed_forward.float32-in-bfloat16", "float32", seam="activation")
def float32_in_bfloat16(self: Seams, x: Tensor) -> Tensor:
    """The hidden layer of a float32 call is kept in bfloat16. Five digits are lost, silently."""
    sound = self.sound.activation(x)
    return sound.bfloat16().to(x.dtype) if x.dtype == torch.float32 else sound


@fault("feed_forward.float32-in-float16", "float32", seam="expand")
def float32_in_float16(self: Seams, module: Node, x: Tensor) -> Tensor:
    """The first product of a float32 call is rounded to float16. Four digits are lost, silently."""
    sound = self.sound.expand(module, x)
    return sound.half().to(x.dtype) if x.dtype == torch.float32 else sound


@fault("feed_forward.overflow-in-half", "half-precision", seam="contract", origin="B126")
def overflow_in_half(self: Seams, module: Node, x: Tensor) -> Tensor:
    """The hidden layer is scaled up by a hundred thousand and down again.

    float16 is infinite on the way.
    """
    return self.sound.contract(module, (x * 1e5) / 1e5)


@fault("feed_forward.not-narrowed-back", "half-precision", seam="feed_forward")
def not_narrowed_back(self: Seams, module: Node, x: Tensor) -> Tensor:
    """A half-precision result is returned in float32.

    What follows is asked to multiply unlike precisions.
    """
    sound = self.sound.feed_forward(module, x)
    return sound.float() if x.dtype in (torch.float16, torch.bfloat16) else sound
