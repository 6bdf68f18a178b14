"""One object for all blocks, with a number for each, and slopes of ALiBi."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Cache:
    def __init__(self, n_layers):
        self.pairs = [None] * n_layers

    def length(self):
        return 0 if self.pairs[0] is None else self.pairs[0][0].shape[1]

    def append(self, layer, k, v):
        if self.pairs[layer] is not None:
            k = torch.cat([self.pairs[layer][0], k], dim=1)
            v = torch.cat([self.pairs[layer][1], v], dim=1)
        self.pairs[layer] = (k, v)
        return k, v


class Attention(nn.Module):
    def __init__(self, layer, dim, heads):
        super().__init__()
        if dim % heads:
            raise ValueError(f"a width of {dim} cannot be divided among {heads} heads")
        self.layer, self.heads = layer, heads
        self.query, self.key = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.value, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, cache, first):
        b, t, d = x.shape
        k, v = self.key(x), self.value(x)
        if cache is not None:
            k, v = cache.append(self.layer, k, v)
        q, k, v = (
            one.view(b, -1, self.heads, d // self.heads).transpose(1, 2)
            for one in (self.query(x), k, v)
        )
        scores = torch.einsum("bhqe,bhke->bhqk", q, k) / (d // self.heads) ** 0.5
        distance = (
            torch.arange(k.shape[2], device=x.device)[None]
            - torch.arange(first, first + t, device=x.device)[:, None]
        )
        slopes = 2.0 ** (-8.0 * torch.arange(1, self.heads + 1, device=x.device) / self.heads)
        bias = slopes[:, None, None].to(x.dtype) * distance.to(x.dtype)
        scores = (scores + bias).masked_fill(distance > 0, float("-inf"))
        y = torch.einsum("bhqk,bhke->bhqe", scores.softmax(-1), v)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class BloomLM(nn.Module):
    def __init__(self, vocab, dim, heads, layers):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.attention = nn.ModuleList([Attention(i, dim, heads) for i in range(layers)])
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(2 * layers)])
        self.wide = nn.ModuleList([nn.Linear(dim, 4 * dim) for _ in range(layers)])
        self.narrow = nn.ModuleList([nn.Linear(4 * dim, dim) for _ in range(layers)])
        self.last = nn.LayerNorm(dim)

    def forward(self, tokens, cache=None):
        first = 0 if cache is None else cache.length()
        x = self.embedding(tokens)
        for i, attention in enumerate(self.attention):
            x = x + attention(self.norms[2 * i](x), cache, first)
            x = x + self.narrow[i](F.relu(self.wide[i](self.norms[2 * i + 1](x))))
        return self.last(x) @ self.embedding.weight.T
