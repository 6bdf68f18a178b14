"""Multi-head attention, written without attentest."""

import math

import torch
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    """Attend with several heads at once."""

    def __init__(self, dim: int, n_heads: int, p: float = 0.1) -> None:
        super().__init__()
        if dim % n_heads:
            raise ValueError(f"{dim} columns cannot be divided among {n_heads} heads")
        self.n_heads = n_heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.drop = nn.Dropout(p)

    def split(self, x: Tensor, part: int) -> Tensor:
        """Project x with one third of the packed weights and give each head its columns."""
        weight = self.to_qkv.weight.chunk(3)[part]
        return (x @ weight.T).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(self, v: Tensor, k: Tensor, q: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return (batch, queries, dim) for queries q, keys k and values v."""
        q, k, v = self.split(q, 0), self.split(k, 1), self.split(v, 2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)
        weights = self.drop(scores.softmax(-1))
        return self.proj((weights @ v).transpose(1, 2).flatten(2))
