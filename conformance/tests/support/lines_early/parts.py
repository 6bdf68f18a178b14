"""Components in short lines: what is wrong in one of them is seen lines later."""

import torch
from torch import nn


def attention(q, k, v, mask=None):
    """mask: True where a query may look."""
    rows = torch.einsum("bhqe->bhqe", q)
    columns = torch.einsum("bhke->bhke", k)
    if mask is not None:
        mask = mask.expand(-1, -1, rows.shape[2], columns.shape[2])
        hidden = mask.logical_not()
    product = torch.einsum("bhqe,bhke->bhqk", rows, columns)
    scale = q.shape[-1] ** -0.5
    scaled = product * scale
    if mask is not None:
        scaled = scaled.masked_fill(hidden, float("-inf"))
    top = scaled.amax(dim=-1, keepdim=True)
    powers = torch.exp(scaled - top)
    total = powers.sum(dim=-1, keepdim=True)
    shares = powers / total
    return torch.einsum("bhqk,bhke->bhqe", shares, v)


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        first = x.mean(dim=-1, keepdim=True)
        moved = x - first
        second = moved.square().mean(dim=-1, keepdim=True)
        inverse = torch.rsqrt(second + self.eps)
        scale = inverse * self.weight
        return moved * scale + self.bias


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w_in, self.w_out = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        lengths = x.shape[:-1]
        flat = x.reshape(-1, x.shape[-1])
        wide = self.w_in(flat)
        active = wide.clamp(min=0)
        narrow = self.w_out(active)
        return narrow.view(*lengths, -1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} is not a multiple of num_heads {num_heads}")
        self.num_heads = num_heads
        self.w_q, self.w_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.w_v, self.w_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.w_q(query)
        k = self.w_k(key)
        v = self.w_v(value)
        q = q.unflatten(-1, (self.num_heads, -1))
        k = k.unflatten(-1, (self.num_heads, -1))
        v = v.unflatten(-1, (self.num_heads, -1))
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        heads = attention(q, k, v, mask)
        heads = heads.transpose(1, 2)
        return self.w_o(heads.flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.attend = MultiHeadAttention(d_model, num_heads)
        self.feed = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, mask=None):
        given = x
        seen = self.attend(given, given, given, mask)
        x = self.norm1(x + seen)
        kept = x
        fed = self.feed(kept)
        total = kept + fed
        return self.norm2(total)
