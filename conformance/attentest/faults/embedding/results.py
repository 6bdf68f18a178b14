"""Faults in what is returned: shapes and precisions."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "embedding.output-squeezed",
    clause="embedding.shapes",
    origin="B036",
    wrong="The output is squeezed without naming an axis.",
    effect="One sample or one token drops an axis, often at inference alone.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.lookup(module, tokens).squeeze()


@fault(
    "embedding.factor-double-precision",
    clause="embedding.shapes",
    wrong="The factor is a float64 array and widens all that it is multiplied with.",
    effect="A float32 model computes in float64 from its first step, or raises in its second.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x * torch.full((d_model,), d_model**0.5, dtype=torch.float64, device=x.device)


@fault(
    "embedding.output-single-precision",
    clause="embedding.shapes",
    wrong="The output is returned in float32 whatever the table is.",
    effect="What follows computes in another precision, or raises for mixed ones.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return self.sound.scale_embedding(x, d_model).float()
