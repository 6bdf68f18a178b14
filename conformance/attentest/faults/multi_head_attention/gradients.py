"""Faults in the gradients."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.multi_head_attention.shared import bias_of
from attentest.specimens import Mask, Node, Seams


@fault(
    "multi_head_attention.value-detached",
    clause="multi_head_attention.every-parameter-reached",
    wrong="The projected value is detached from the graph.",
    effect="The value projection stays as it was born.",
    kind="gradient",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected.detach() if name == "value" else projected


@fault(
    "multi_head_attention.output-bias-detached",
    clause="multi_head_attention.every-parameter-reached",
    wrong="The bias of the output projection is added outside of the graph.",
    effect="It stays as it was born.",
    kind="gradient",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    if name != "output":
        return projected
    bias = bias_of(self, module, name, x)
    return projected - bias + bias.detach()


@fault(
    "multi_head_attention.query-and-key-detached",
    clause="multi_head_attention.every-parameter-reached",
    wrong="Where to look is computed without a graph.",
    effect="Values train; what attention attends to stays as it was born.",
    kind="gradient",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected.detach() if name in ("query", "key") else projected


@fault(
    "multi_head_attention.key-gradient-halved",
    clause="multi_head_attention.gradient",
    wrong="The gradient of the projected keys is halved by a hand-written backward pass.",
    effect="Values are right, and training is another.",
    kind="gradient",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected / 2 + projected.detach() / 2 if name == "key" else projected


@fault(
    "multi_head_attention.first-head-trained",
    clause="multi_head_attention.gradient",
    wrong="The gradient flows through the first head alone.",
    effect="Every parameter gets a gradient, and most of it is missing.",
    kind="gradient",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    first = torch.arange(x.shape[1], device=x.device).view(1, -1, 1, 1) == 0
    return self.sound.merge_heads(torch.where(first, x, x.detach()))


@fault(
    "multi_head_attention.input-detached",
    clause="multi_head_attention.gradient",
    wrong="The key input is detached before it is projected.",
    effect="All parameters here train; what made the memory does not.",
    kind="gradient",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    return self.sound.multi_head_attention(module, query, key.detach(), value, mask)


@fault(
    "multi_head_attention.mask-straight-through",
    clause="multi_head_attention.gradient-to-masked-keys",
    wrong="The gradient is that of a call without the mask.",
    effect="Pads and the future are invisible and are trained through all the same.",
    kind="gradient",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    masked = self.sound.multi_head_attention(module, query, key, value, mask)
    free = self.sound.multi_head_attention(module, query, key, value, None)
    return masked.detach() + free - free.detach()


@fault(
    "multi_head_attention.norm-of-hidden-values",
    clause="multi_head_attention.gradient-to-masked-keys",
    wrong="Hidden values are zeroed, and the gradient of every value's length is taken along.",
    effect="Outputs are right; the slope of a length at zero is 0 / 0, and NaN spreads.",
    kind="gradient",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    if mask is not None:
        seen = mask.any(dim=2).any(dim=1)[..., None]
        value = value * seen
        length = value.pow(2).sum(dim=-1, keepdim=True).sqrt()
        value = value + length - length.detach()
    return self.sound.multi_head_attention(module, query, key, value, mask)
