"""Faults in modes, memory layouts and side effects."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault(
    "multi_head_attention.dropout-in-evaluation",
    "deterministic",
    seam="multi_head_attention",
    origin="B100",
    kind="mode",
)
def dropout_in_evaluation(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Dropout on the output ignores the mode. Evaluation is random."""
    output = self.correct.multi_head_attention(module, query, key, value, mask)
    rate = self.dropout_rate()
    return self.drop(output, rate) if rate > 0 else output


@fault("multi_head_attention.keys-cached", "deterministic", seam="project", kind="state")
def keys_cached(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The projected keys of a call are kept and attended by the next one that they fit.

    The output for a sequence depends on the one before it.
    """
    projected = self.correct.project(module, name, x)
    if name != "key":
        return projected
    last = self.memory.get("key", projected)
    self.memory["key"] = projected.detach()
    return (projected + last) / 2 if last.shape == projected.shape else projected


@fault(
    "multi_head_attention.query-scaled-in-place",
    "deterministic",
    seam="multi_head_attention",
    kind="state",
)
def query_scaled_in_place(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The caller's query is scaled in place. A second call scales it again."""
    output = self.correct.multi_head_attention(module, query, key, value, mask)
    with torch.no_grad():
        query.mul_(self.head_width() ** -0.5)
    return output


@fault("multi_head_attention.layout-assumed", "strided-inputs", seam="multi_head_attention")
def layout_assumed(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The key is read as contiguous memory. Transposed views silently give other keys."""
    strides = torch.empty(key.shape, device="meta").stride()
    read = key.as_strided(key.shape, strides)
    return self.correct.multi_head_attention(module, query, read, value, mask)


@fault("multi_head_attention.view-of-strided", "strided-inputs-accepted", seam="project")
def view_of_strided(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Samples and positions are merged by a view, which transposed inputs do not allow.

    It raises for some inputs and not for others of the same shape.
    """
    if name == "output":
        return self.correct.project(module, name, x)
    return self.correct.project(module, name, x.view(-1, x.shape[-1]).view(x.shape))


@fault(
    "multi_head_attention.dropped-weights-not-scaled",
    "deterministic",
    seam="drop_weights",
    kind="mode",
    components=("attention",),
)
def dropped_weights_not_scaled(self: Hooks, module: Node, weights: Tensor) -> Tensor:
    """Weights are dropped in training, and those that stay are not scaled up.

    Activations are smaller in training than ever after.
    """
    rate = self.dropout_rate() if self.is_training(module) else 0.0
    return weights * (torch.rand_like(weights) >= rate)


@fault(
    "multi_head_attention.dropout-rate-doubled",
    "deterministic",
    seam="drop_weights",
    kind="mode",
    components=("attention",),
)
def dropout_rate_doubled(self: Hooks, module: Node, weights: Tensor) -> Tensor:
    """The rate is doubled. A model asked to drop a tenth of its weights drops a fifth."""
    rate = min(2 * self.dropout_rate(), 0.95)
    return self.drop(weights, rate) if self.is_training(module) and rate > 0 else weights
