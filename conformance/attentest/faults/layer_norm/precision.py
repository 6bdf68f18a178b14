"""Faults in the precisions that a step is computed in."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "layer_norm.always-float32",
    clause="layer_norm.shapes",
    wrong="The output is float32, whatever came in.",
    effect="float64 loses half of its digits, halves are mixed with floats from here on.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.layer_norm(module, x).float()


@fault(
    "layer_norm.mean-in-float32",
    clause="layer_norm.large-offset",
    wrong="The mean of a float64 row is taken in float32.",
    effect="What rounding left of it stays in the row; a row far from zero shows it.",
)
def mean(self: Seams, x: Tensor) -> Tensor:
    return self.sound.mean(x.float()).to(x.dtype)


@fault(
    "layer_norm.float32-in-bfloat16",
    clause="layer_norm.float32",
    wrong="float32 is narrowed to bfloat16 on the way.",
    effect="Five digits are lost, silently.",
)
def widen(self: Seams, x: Tensor) -> Tensor:
    wide = self.sound.widen(x)
    return wide.bfloat16() if x.dtype == torch.float32 else wide


@fault(
    "layer_norm.float32-sum-in-float16",
    clause="layer_norm.float32",
    wrong="The mean of a float32 row is taken in float16.",
    effect="The centre is off by a thousandth of the values.",
)
def mean(self: Seams, x: Tensor) -> Tensor:
    if x.dtype != torch.float32:
        return self.sound.mean(x)
    return self.sound.mean(x.half()).to(x.dtype)


@fault(
    "layer_norm.squares-overflow",
    clause="layer_norm.half-precision",
    wrong="float16 is not widened before it is squared.",
    effect="Rows beyond 256 have an infinite variance and come out as the bias.",
)
def widen(self: Seams, x: Tensor) -> Tensor:
    return x


@fault(
    "layer_norm.not-narrowed-back",
    clause="layer_norm.half-precision",
    wrong="Half precision is widened to float32 and does not come back.",
    effect="What follows is asked to multiply unlike precisions.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    sound = self.sound.layer_norm(module, x)
    return sound if x.dtype == torch.float64 else sound.float()
