"""Faults in the gradients."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.multi_head_attention.projections import bias_of
from attentest.faults.reference_models import Hooks, Mask, Node


@fault(
    "multi_head_attention.value-detached",
    "every-parameter-reached",
    seam="project",
    kind="gradient",
)
def value_detached(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The projected value is detached from the graph. The value projection stays as it was born."""
    projected = self.correct.project(module, name, x)
    return projected.detach() if name == "value" else projected


@fault(
    "multi_head_attention.output-bias-detached",
    "every-parameter-reached",
    seam="project",
    kind="gradient",
)
def output_bias_detached(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The bias of the output projection is added outside of the graph. It stays as it was born."""
    projected = self.correct.project(module, name, x)
    if name != "output":
        return projected
    bias = bias_of(self, module, name, x)
    return projected - bias + bias.detach()


@fault(
    "multi_head_attention.query-and-key-detached",
    "every-parameter-reached",
    seam="project",
    kind="gradient",
)
def query_and_key_detached(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Where to look is computed without a graph.

    Values train; what attention attends to stays as it was born.
    """
    projected = self.correct.project(module, name, x)
    return projected.detach() if name in ("query", "key") else projected


@fault("multi_head_attention.key-gradient-halved", "gradient", seam="project", kind="gradient")
def key_gradient_halved(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The gradient of the projected keys is halved by a hand-written backward pass.

    Values are right, and training is another.
    """
    projected = self.correct.project(module, name, x)
    return projected / 2 + projected.detach() / 2 if name == "key" else projected


@fault("multi_head_attention.first-head-trained", "gradient", seam="merge_heads", kind="gradient")
def first_head_trained(self: Hooks, x: Tensor) -> Tensor:
    """The gradient flows through the first head alone.

    Every parameter gets a gradient, and most of it is missing.
    """
    first = torch.arange(x.shape[1], device=x.device).view(1, -1, 1, 1) == 0
    return self.correct.merge_heads(torch.where(first, x, x.detach()))


@fault(
    "multi_head_attention.input-detached", "gradient", seam="multi_head_attention", kind="gradient"
)
def input_detached(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The key input is detached before it is projected.

    All parameters here train; what made the memory does not.
    """
    return self.correct.multi_head_attention(module, query, key.detach(), value, mask)


@fault(
    "multi_head_attention.mask-straight-through",
    "gradient-to-masked-keys",
    seam="multi_head_attention",
    kind="gradient",
)
def mask_straight_through(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The gradient is that of a call without the mask.

    Pads and the future are invisible and are trained through all the same.
    """
    masked = self.correct.multi_head_attention(module, query, key, value, mask)
    free = self.correct.multi_head_attention(module, query, key, value, None)
    return masked.detach() + free - free.detach()


@fault(
    "multi_head_attention.norm-of-hidden-values",
    "gradient-to-masked-keys",
    seam="multi_head_attention",
    kind="gradient",
)
def norm_of_hidden_values(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Hidden values are zeroed, and the gradient of every value's length is taken along.

    Outputs are right; the slope of a length at zero is 0 / 0, and NaN spreads.
    """
    if mask is not None:
        seen = mask.any(dim=2).any(dim=1)[..., None]
        value = value * seen
        length = value.pow(2).sum(dim=-1, keepdim=True).sqrt()
        value = value + length - length.detach()
    return self.correct.multi_head_attention(module, query, key, value, mask)
