"""Masks in which True hides, handed in; the last target token is dropped inside."""

from copy import deepcopy

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv_weight = nn.Parameter(torch.randn(3 * width, width) * width**-0.5)
        self.qkv_bias = nn.Parameter(torch.zeros(3 * width))
        self.o = nn.Linear(width, width)

    def forward(self, x, memory, hidden):
        weights, biases = self.qkv_weight.chunk(3), self.qkv_bias.chunk(3)
        q, k, v = (
            (y @ w.T + b).unflatten(-1, (self.heads, -1)).movedim(-2, -3)
            for y, w, b in zip((x, memory, memory), weights, biases, strict=True)
        )
        scores = (q @ k.mT).div(q.shape[-1] ** 0.5)
        scores[hidden.expand_as(scores)] = -torch.inf
        return self.o((scores.softmax(-1) @ v).movedim(-3, -2).flatten(-2))


class Layer(nn.Module):
    def __init__(self, width, heads, inner, rate, crossing=False):
        super().__init__()
        names = ["own", "other"][: 1 + crossing]
        self.attention = nn.ModuleDict({one: Attention(width, heads) for one in names})
        self.norms = nn.ModuleDict({one: nn.LayerNorm(width) for one in [*names, "feed"]})
        self.feed = nn.Sequential(nn.Linear(width, inner), nn.SiLU(), nn.Linear(inner, width))
        self.rate = nn.Dropout(rate)

    def forward(self, x, hidden, memory=None, memory_hidden=None):
        x = self.norms["own"](x + self.rate(self.attention["own"](x, x, hidden)))
        if memory is not None:
            y = self.attention["other"](x, memory, memory_hidden)
            x = self.norms["other"](x + self.rate(y))
        return self.norms["feed"](x + self.rate(self.feed(x)))


class TranslationModel(nn.Module):
    """source_mask and target_mask are boolean: True positions are ignored by attention."""

    def __init__(self, n_src_vocab, n_tgt_vocab, width, heads, inner_dim, depth, max_len, p=0.1):
        super().__init__()
        self.source_table = nn.Embedding(n_src_vocab, width)
        self.target_table = nn.Embedding(n_tgt_vocab, width)
        self.source_places = nn.Parameter(torch.randn(max_len, width))
        self.target_places = nn.Parameter(torch.randn(max_len, width))
        first, second = Layer(width, heads, inner_dim, p), Layer(width, heads, inner_dim, p, True)
        self.encoder = nn.ModuleList(deepcopy(first) for _ in range(depth))
        self.decoder = nn.ModuleList(deepcopy(second) for _ in range(depth))
        self.logits = nn.Linear(width, n_tgt_vocab)
        self.rate = nn.Dropout(p)

    def forward(self, source, target, source_mask, target_mask):
        target, target_mask = target[:, :-1], target_mask[..., :-1, :-1]
        x = self.rate(self.source_table(source) + self.source_places[: source.shape[1]])
        for layer in self.encoder:
            x = layer(x, source_mask)
        y = self.rate(self.target_table(target) + self.target_places[: target.shape[1]])
        for layer in self.decoder:
            y = layer(y, target_mask, x, source_mask)
        return {"logits": self.logits(y), "memory": x}
