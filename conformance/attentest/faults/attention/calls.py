"""Faults in modes, memory layouts and side effects."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault("attention.dropout-scale-kept", "convex-hull", seam="drop_weights")
def dropout_scale_kept(self: Hooks, module: Node, weights: Tensor) -> Tensor:
    """The factor 1 / (1 - p) of dropout also acts in evaluation. Outputs are a tenth too large."""
    return weights / 0.9


@fault("attention.layout-assumed", "strided-inputs", seam="scores")
def layout_assumed(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """The keys are read as contiguous memory. Transposed views silently give other keys."""
    strides = torch.empty(key.shape, device="meta").stride()
    return self.correct.scores(query, key.as_strided(key.shape, strides), factor)


@fault("attention.view-of-strided", "strided-inputs-accepted", seam="mix")
def view_of_strided(self: Hooks, weights: Tensor, value: Tensor) -> Tensor:
    """Samples and heads are merged by a view, which transposed inputs do not allow.

    It raises for some inputs and not for others of the same shape.
    """
    batch, heads, keys, width = value.shape
    return self.correct.mix(weights, value.view(batch * heads * keys * width).view(value.shape))


@fault(
    "attention.dropout-in-evaluation",
    "deterministic",
    seam="drop_weights",
    origin="B100",
    kind="mode",
)
def dropout_in_evaluation(self: Hooks, module: Node, weights: Tensor) -> Tensor:
    """Dropout on the weights ignores the mode. Evaluation is random."""
    rate = self.dropout_rate()
    return self.correct.drop(weights, rate) if rate > 0 else weights


@fault("attention.query-scaled-in-place", "deterministic", seam="scores", kind="state")
def query_scaled_in_place(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """The caller's query is scaled in place. A second call scales it again."""
    with torch.no_grad():
        query.mul_(factor)
    return self.correct.scores(query, key, 1.0)


@fault("attention.mask-remembered", "deterministic", seam="mask_scores", kind="state")
def mask_remembered(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """Without a mask, that of the call before is used if it fits. Results depend on history."""
    if mask is not None:
        self.memory["mask"] = mask
    last: Mask = self.memory.get("mask")
    fits = last is not None and last.shape[-1] == raw.shape[-1] and last.shape[-2] == 1
    return self.correct.mask_scores(raw, last if mask is None and fits else mask)


@fault("attention.weights-in-one-buffer", "deterministic", seam="returned_weights", kind="state")
def weights_in_one_buffer(self: Hooks, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    """Weights share a buffer per shape.

    A later call overwrites weights that were returned earlier.
    """
    if torch.is_grad_enabled():
        return used
    kept: Tensor = self.memory.setdefault(str(used.shape), torch.empty_like(used))
    return kept.copy_(used)
