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
    """The projected value is detached from the graph. The value projection is never trained."""
    projected = self.correct.project(module, name, x)
    return projected.detach() if name == "value" else projected


@fault(
    "multi_head_attention.output-bias-detached",
    "every-parameter-reached",
    seam="project",
    kind="gradient",
)
def output_bias_detached(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The bias of the output projection is detached from the graph. It is never trained."""
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
    """Scores are computed without a graph. Queries and keys are never trained."""
    projected = self.correct.project(module, name, x)
    return projected.detach() if name in ("query", "key") else projected


@fault("multi_head_attention.key-gradient-halved", "gradient", seam="project", kind="gradient")
def key_gradient_halved(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """A hand-written backward pass halves the keys' gradient.

    Values are right, training differs.
    """
    projected = self.correct.project(module, name, x)
    return projected / 2 + projected.detach() / 2 if name == "key" else projected


@fault("multi_head_attention.first-head-trained", "gradient", seam="merge_heads", kind="gradient")
def first_head_trained(self: Hooks, x: Tensor) -> Tensor:
    """Gradients flow through the first head alone. Most of each gradient is missing."""
    first = torch.arange(x.shape[1], device=x.device).view(1, -1, 1, 1) == 0
    return self.correct.merge_heads(torch.where(first, x, x.detach()))


@fault(
    "multi_head_attention.input-detached", "gradient", seam="multi_head_attention", kind="gradient"
)
def input_detached(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The key input is detached before it is projected. The memory's encoder is not trained."""
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

    Padding and the future are trained through.
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
