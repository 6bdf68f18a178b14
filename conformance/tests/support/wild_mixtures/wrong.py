"""Mixtures of experts as they are written, each with one mistake."""

import torch
from torch import nn
from torch.nn import functional


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Routed(nn.Module):
    """The router and the experts; subclasses have the mistakes."""

    def __init__(self, dim, hidden, num_experts, top_k):
        super().__init__()
        self.top_k = top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList([Expert(dim, hidden) for _ in range(num_experts)])

    def route(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(self.top_k)
        return weights / weights.sum(-1, keepdim=True), chosen

    def combine(self, x, weights, chosen):
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, ranks = torch.where(chosen == number)
            out = out.index_add(0, rows, weights[rows, ranks, None] * expert(x[rows]))
        return out

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        return self.combine(rows, *self.route(rows)).view(x.shape)


class OverwritingMoE(Routed):
    def combine(self, x, weights, chosen):
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, ranks = torch.where(chosen == number)
            out[rows] = weights[rows, ranks, None] * expert(x[rows])
        return out


class InputWeightedMoE(Routed):
    def combine(self, x, weights, chosen):
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, ranks = torch.where(chosen == number)
            out.index_add_(0, rows, expert(weights[rows, ranks, None] * x[rows]))
        return out


class TokenSoftmaxMoE(Routed):
    def route(self, x):
        weights, chosen = self.gate(x).softmax(0).topk(self.top_k)
        return weights / weights.sum(-1, keepdim=True), chosen


class OneMoreMoE(Routed):
    def route(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(min(self.top_k + 1, len(self.experts)))
        return weights / weights.sum(-1, keepdim=True), chosen


class TransposedMoE(Routed):
    def forward(self, x):
        rows = x.transpose(0, 1).reshape(-1, x.shape[-1])
        return self.combine(rows, *self.route(rows)).view(x.shape)


class SameExpertMoE(Routed):
    def __init__(self, dim, hidden, num_experts, top_k):
        super().__init__(dim, hidden, num_experts, top_k)
        self.experts = nn.ModuleList([Expert(dim, hidden)] * num_experts)


class DetachedMoE(Routed):
    def route(self, x):
        weights, chosen = super().route(x)
        return weights.detach(), chosen


class ThresholdMoE(Routed):
    """Every expert with a score of at least the k-th."""

    def forward(self, x):
        scores = self.gate(x).softmax(-1)
        least = scores.topk(self.top_k).values[..., -1:]
        kept = scores * (scores >= least)
        kept = kept / kept.sum(-1, keepdim=True)
        return sum(kept[..., n, None] * expert(x) for n, expert in enumerate(self.experts))
