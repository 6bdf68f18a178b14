"""Faults in the gradients."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import math

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Mask, Seams

Answer = tuple[Tensor, Tensor]


@fault(
    "attention.weights-detached",
    clause="attention.gradient",
    wrong="The weights are detached from the graph before they are used.",
    effect="Values train; queries and keys stay as they were born.",
    kind="gradient",
)
def mix(self: Seams, weights: Tensor, value: Tensor) -> Tensor:
    return self.sound.mix(weights.detach(), value)


@fault(
    "attention.query-detached",
    clause="attention.gradient",
    wrong="The query is detached from the graph.",
    effect="The query projection is never trained.",
    kind="gradient",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    return self.sound.scores(query.detach(), key, factor)


@fault(
    "attention.softmax-backward-incomplete",
    clause="attention.gradient",
    wrong="The hand-written backward pass of the softmax leaves out the sum over the row.",
    effect="Values are right and gradients point elsewhere.",
    kind="gradient",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    weights = self.sound.softmax(scores).detach()
    hidden = scores == -math.inf
    shown = scores.masked_fill(hidden, 0.0)
    return weights * (1.0 + shown - shown.detach())


@fault(
    "attention.straight-through-mask",
    clause="attention.gradient-to-masked-keys",
    wrong="The gradient is that of the weights before the mask.",
    effect="Pads and the future are invisible and are trained through all the same.",
    kind="gradient",
)
def attention(
    self: Seams, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    _, masked = self.sound.attention(module, query, key, value, mask)
    _, free = self.sound.attention(module, query, key, value, None)
    weights = masked.detach() + (free - free.detach())
    return self.sound.mix(weights, value), weights


@fault(
    "attention.logarithm-of-zero-weights",
    clause="attention.gradient-finite",
    wrong="Weights are kept as logarithms and raised again before they are used.",
    effect="Values are right; at every masked key the gradient is zero times infinity.",
    kind="gradient",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return self.sound.softmax(scores).log().exp()


@fault(
    "attention.overflow-behind-mask",
    clause="attention.gradient-finite",
    wrong="Exponentials of masked scores are computed and thrown away after they overflowed.",
    effect="Values are right; the gradient is zero times infinity once a masked key fits best.",
    kind="gradient",
)
def attention(
    self: Seams, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    if mask is None:
        return self.sound.attention(module, query, key, value, mask)
    raw = self.sound.scores(query, key, self.sound.scale(query.shape[-1], query.shape[1]))
    peak = raw.masked_fill(~mask, -math.inf).amax(dim=-1, keepdim=True)
    powers = torch.where(mask, torch.exp(raw - peak), 0.0)
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return self.sound.mix(weights, value), weights


@fault(
    "attention.query-detached-in-training",
    clause="attention.gradient",
    wrong="In training mode no gradient reaches the queries.",
    effect="Gradient checks in evaluation mode pass, and half of attention is never trained.",
    kind="gradient",
)
def attention(
    self: Seams, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> tuple[Tensor, Tensor]:
    given = query.detach() if module.training else query
    return self.sound.attention(module, given, key, value, mask)
