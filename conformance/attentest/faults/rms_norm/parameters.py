"""Faults in weight and bias."""

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

OFFSET = {"rms_weight": "one-plus-weight"}
BIASED = {"rms_bias": "present"}


@fault("rms_norm.weight-dropped", "weight-by-column", seam="row_weight")
def weight_dropped(self: Hooks, module: Node) -> Tensor | None:
    """The weight is not applied. Its initial value of 1 hides it; no column can be scaled."""
    return None


@fault("rms_norm.weight-squared", "weight-by-column", seam="row_weight")
def weight_squared(self: Hooks, module: Node) -> Tensor | None:
    """The weight is applied twice. Its initial value of 1 hides it."""
    weight = self.correct.row_weight(module)
    return None if weight is None else weight * weight


@fault("rms_norm.weight-along-positions", "weight-by-column", seam="weigh_row")
def weight_along_positions(self: Hooks, module: Node, rows: Tensor, dtype: torch.dtype) -> Tensor:
    """If there are as many positions as columns, the weight is applied along the positions.

    Other lengths are right; at this one every position has a weight of its own.
    """
    if rows.dim() > 1 and rows.shape[-2] == rows.shape[-1]:
        turned = self.correct.weigh_row(module, rows.transpose(-2, -1), dtype)
        return turned.transpose(-2, -1)
    return self.correct.weigh_row(module, rows, dtype)


@fault("rms_norm.offset-twice", "weight", seam="row_weight", origin="M097", choices=OFFSET)
def offset_twice(self: Hooks, module: Node) -> Tensor | None:
    """1 is added to a weight that has it already. Every branch comes out too large."""
    weight = self.correct.row_weight(module)
    return None if weight is None else 1.0 + weight


@fault("rms_norm.offset-missing", "weight", seam="row_weight", origin="M097", choices=OFFSET)
def offset_missing(self: Hooks, module: Node) -> Tensor | None:
    """1 is not added to a weight that lies around 0. New models give zeros."""
    weight = self.correct.row_weight(module)
    return None if weight is None else weight - 1.0


@fault("rms_norm.offset-undeclared", "weight", seam="row_weight", origin="Blaizzy/mlx-vlm PR#2111")
def offset_undeclared(self: Hooks, module: Node) -> Tensor | None:
    """1 is added to the weight, which is not declared. A checkpoint with ones is doubled."""
    weight = self.correct.row_weight(module)
    return None if weight is None else weight + 1.0


@fault(
    "rms_norm.ones-and-one",
    "initial-weight",
    seam="make_rms_norm",
    origin="huggingface/transformers PR#40796",
    choices=OFFSET,
    kind="state",
)
def ones_and_one(self: Hooks) -> Node:
    """The weight that 1 is added to is initialised to 1. Every branch starts twice as large."""
    built = self.correct.make_rms_norm()
    nn.init.ones_(next(built.parameters()))
    built.how = self
    return built


@fault(
    "rms_norm.zero-weight",
    "initial-weight",
    seam="make_rms_norm",
    origin="google-research/timesfm PR#481",
    kind="state",
)
def zero_weight(self: Hooks) -> Node:
    """The weight is initialised to 0 and multiplies as it is. New models give zeros."""
    built = self.correct.make_rms_norm()
    nn.init.zeros_(next(built.parameters()))
    built.how = self
    return built


@fault(
    "rms_norm.random-weight",
    "initial-weight",
    seam="make_rms_norm",
    origin="flagos-ai/FlagPerf PR#683",
    kind="state",
)
def random_weight(self: Hooks) -> Node:
    """The weight is initialised at random. Columns start with random sizes and signs."""
    built = self.correct.make_rms_norm()
    nn.init.normal_(next(built.parameters()))
    built.how = self
    return built


@fault("rms_norm.weight-frozen", "parameters-trained", seam="make_rms_norm", kind="state")
def weight_frozen(self: Hooks) -> Node:
    """The weight requires no gradient. It is never trained."""
    built = self.correct.make_rms_norm()
    next(built.parameters()).requires_grad_(False)
    built.how = self
    return built


@fault("rms_norm.weight-plain", "parameters-trained", seam="make_rms_norm", kind="state")
def weight_plain(self: Hooks) -> Node:
    """The weight is a buffer and no parameter. It is saved and moved, and never trained."""
    built = self.correct.make_rms_norm()
    name, weight = next(built.named_parameters())
    delattr(built, name)
    built.register_buffer(name, weight.detach())
    built.how = self
    return built


@fault(
    "rms_norm.weight-detached",
    "gradient",
    seam="row_weight",
    origin="paiml/trueno PR#178",
    kind="gradient",
)
def weight_detached(self: Hooks, module: Node) -> Tensor | None:
    """The weight is detached from the graph. Values are right; the weight is never trained."""
    weight = self.correct.row_weight(module)
    return None if weight is None else weight.detach()


@fault("rms_norm.bias-undeclared", "bias", seam="row_bias")
def bias_undeclared(self: Hooks, module: Node) -> Tensor | None:
    """A small number is added that is not declared. A row of zeros does not stay zero."""
    return torch.full((self.sizes.d_model,), 0.125, device=next(module.parameters()).device)


@fault("rms_norm.bias-dropped", "bias", seam="row_bias", choices=BIASED)
def bias_dropped(self: Hooks, module: Node) -> Tensor | None:
    """The declared bias is not applied. It is never trained."""
    return None
