"""Projections of one matrix that einops takes apart, a sine table, and layers named by roles."""

import math

import torch
from einops import rearrange
from torch import nn


class Attend(nn.Module):
    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"{heads} heads do not divide a width of {width}")
        self.heads = heads
        self.inward = nn.Linear(width, 3 * width, bias=False)
        self.outward = nn.Linear(width, width, bias=False)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        q, k, v = rearrange(self.inward(x), "b t (n h e) -> n b h t e", n=3, h=self.heads)
        scores = torch.einsum("bhqe,bhke->bhqk", q, k) / math.sqrt(q.shape[-1])
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        weights = self.drop(scores.masked_fill(ahead, float("-inf")).softmax(-1))
        return self.outward(rearrange(weights @ v, "b h t e -> b t (h e)"))


class Layer(nn.Module):
    def __init__(self, width: int, inner: int, heads: int, drop: float) -> None:
        super().__init__()
        self.attend = Attend(width, heads, drop)
        self.before = nn.LayerNorm(width)
        self.behind = nn.LayerNorm(width)
        self.think = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        x = x + self.drop(self.attend(self.before(x)))
        return x + self.drop(self.think(self.behind(x)))


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, width, inner, depth, heads, longest, dropout=0.0):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        angles = torch.arange(longest)[:, None] * torch.exp(
            torch.arange(0, width, 2) * (-math.log(10000.0) / width)
        )
        table = torch.zeros(longest, width)
        table[:, 0::2] = angles.sin()
        table[:, 1::2] = angles.cos()[:, : width // 2]
        self.register_buffer("table", table)
        self.stack = nn.ModuleList(Layer(width, inner, heads, dropout) for _ in range(depth))
        self.last = nn.LayerNorm(width)
        self.width = width

    def forward(self, ids):
        x = self.embed(ids) * math.sqrt(self.width) + self.table[: ids.shape[1]]
        for layer in self.stack:
            x = layer(x)
        return self.last(x) @ self.embed.weight.T
