"""Mixtures of experts with what is not specified: each is one question."""

import torch
from torch import nn
from torch.nn import functional
from wild_mixtures.wrong import Routed


class CapacityMoE(Routed):
    """An expert takes no more than its share of the positions."""

    def __init__(self, dim, hidden, num_experts, top_k, capacity_factor=1.25):
        super().__init__(dim, hidden, num_experts, top_k)
        self.capacity_factor = capacity_factor


class FixedTopMoE(Routed):
    """Always two experts."""

    def __init__(self, dim, hidden, num_experts):
        super().__init__(dim, hidden, num_experts, 2)


class NoisyTopKMoE(Routed):
    """Noise of a trained size in training."""

    def __init__(self, dim, hidden, num_experts, top_k):
        super().__init__(dim, hidden, num_experts, top_k)
        self.noise = nn.Linear(dim, num_experts, bias=False)

    def route(self, x):
        logits = self.gate(x)
        if self.training:
            logits = logits + torch.randn_like(logits) * functional.softplus(self.noise(x))
        best, chosen = logits.topk(self.top_k)
        return best.softmax(-1), chosen


class HalfMoE(Routed):
    """Weights of one half of the experts alone: a design of its own."""

    def route(self, x):
        scores = self.gate(x).softmax(-1)
        half = scores.shape[-1] // 2
        weights, chosen = scores[..., :half].topk(min(self.top_k, half))
        return weights.sqrt(), chosen
