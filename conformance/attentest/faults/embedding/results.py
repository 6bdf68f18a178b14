"""Faults in the shape and the precision of the output."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("embedding.output-squeezed", "shapes", seam="lookup", origin="B036")
def output_squeezed(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """The output is squeezed without an axis. One sample or one token drops an axis."""
    return self.correct.lookup(module, tokens).squeeze()


@fault("embedding.factor-double-precision", "shapes", seam="scale_embedding")
def factor_double_precision(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The factor is a float64 array and widens all that it is multiplied with.

    A float32 model computes in float64 from its first step, or raises in its second.
    """
    return x * torch.full((d_model,), d_model**0.5, dtype=torch.float64, device=x.device)


@fault("embedding.output-single-precision", "shapes", seam="scale_embedding")
def output_single_precision(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The output is always float32. Later layers compute in another precision, or raise."""
    return self.correct.scale_embedding(x, d_model).float()
