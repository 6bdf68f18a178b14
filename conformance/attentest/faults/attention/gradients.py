"""Faults in the gradients."""

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Answer, Hooks, Mask, Node


@fault("attention.weights-detached", "gradient", seam="mix", kind="gradient")
def weights_detached(self: Hooks, weights: Tensor, value: Tensor) -> Tensor:
    """The weights are detached before they are used. Queries and keys are never trained."""
    return self.correct.mix(weights.detach(), value)


@fault("attention.query-detached", "gradient", seam="scores", kind="gradient")
def query_detached(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """The query is detached from the graph. The query projection is never trained."""
    return self.correct.scores(query.detach(), key, factor)


@fault("attention.softmax-backward-incomplete", "gradient", seam="softmax", kind="gradient")
def softmax_backward_incomplete(self: Hooks, scores: Tensor) -> Tensor:
    """The hand-written backward pass of the softmax leaves out the sum over the row.

    Values are right and gradients point elsewhere.
    """
    weights = self.correct.softmax(scores).detach()
    hidden = scores == -math.inf
    shown = scores.masked_fill(hidden, 0.0)
    return weights * (1.0 + shown - shown.detach())


@fault(
    "attention.straight-through-mask", "gradient-to-masked-keys", seam="attention", kind="gradient"
)
def straight_through_mask(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    """The gradient is that of the weights before the mask.

    Padding and the future are trained through.
    """
    _, masked = self.correct.attention(module, query, key, value, mask)
    _, free = self.correct.attention(module, query, key, value, None)
    weights = masked.detach() + (free - free.detach())
    return self.correct.mix(weights, value), weights


@fault("attention.logarithm-of-zero-weights", "gradient-finite", seam="softmax", kind="gradient")
def logarithm_of_zero_weights(self: Hooks, scores: Tensor) -> Tensor:
    """Weights are kept as logarithms and raised again before they are used.

    Values are right; at every masked key the gradient is zero times infinity.
    """
    return self.correct.softmax(scores).log().exp()


@fault("attention.overflow-behind-mask", "gradient-finite", seam="attention", kind="gradient")
def overflow_behind_mask(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    """Exponentials of masked scores are computed and thrown away after they overflowed.

    Values are right; the gradient is zero times infinity once a masked key fits best.
    """
    if mask is None:
        return self.correct.attention(module, query, key, value, mask)
    raw = self.correct.scores(query, key, self.correct.scale(query.shape[-1], query.shape[1]))
    peak = raw.masked_fill(~mask, -math.inf).amax(dim=-1, keepdim=True)
    powers = torch.where(mask, torch.exp(raw - peak), 0.0)
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return self.correct.mix(weights, value), weights


@fault("attention.query-detached-in-training", "gradient", seam="attention", kind="gradient")
def query_detached_in_training(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> tuple[Tensor, Tensor]:
    """In training mode no gradient reaches the queries.

    Gradient checks in evaluation mode pass, and half of attention is never trained.
    """
    given = query.detach() if module.training else query
    return self.correct.attention(module, given, key, value, mask)
