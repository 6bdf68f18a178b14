"""Faults in the precision of a step."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("layer_norm.always-float32", "shapes", seam="layer_norm")
def always_float32(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The output is float32, whatever came in.

    float64 loses half of its digits, halves are mixed with floats from here on.
    """
    return self.correct.layer_norm(module, x).float()


@fault("layer_norm.mean-in-float32", "large-offset", seam="mean")
def mean_in_float32(self: Hooks, x: Tensor) -> Tensor:
    """The mean of a float64 row is taken in float32.

    What rounding left of it stays in the row; a row far from zero shows it.
    """
    return self.correct.mean(x.float()).to(x.dtype)


@fault("layer_norm.float32-in-bfloat16", "float32", seam="widen")
def float32_in_bfloat16(self: Hooks, x: Tensor) -> Tensor:
    """float32 is narrowed to bfloat16 on the way. Five digits are lost, silently."""
    wide = self.correct.widen(x)
    return wide.bfloat16() if x.dtype == torch.float32 else wide


@fault("layer_norm.float32-sum-in-float16", "float32", seam="mean")
def float32_sum_in_float16(self: Hooks, x: Tensor) -> Tensor:
    """The mean of a float32 row is taken in float16. It is off by a thousandth."""
    if x.dtype != torch.float32:
        return self.correct.mean(x)
    return self.correct.mean(x.half()).to(x.dtype)


@fault("layer_norm.squares-overflow", "half-precision-large", seam="widen")
def squares_overflow(self: Hooks, x: Tensor) -> Tensor:
    """float16 is not widened before it is squared.

    Rows beyond 256 have an infinite variance and come out as the bias.
    """
    return x


@fault("layer_norm.not-narrowed-back", "half-precision", seam="layer_norm")
def not_narrowed_back(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Half precision is widened to float32 and stays so. Later layers mix precisions."""
    correct = self.correct.layer_norm(module, x)
    return correct if x.dtype == torch.float64 else correct.float()
