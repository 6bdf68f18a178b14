"""Attention with fewer heads of keys and values: repeated, and as groups of queries."""

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads):
        super().__init__()
        if d_model % n_heads or n_heads % n_kv_heads:
            raise ValueError(f"{d_model} columns, {n_heads} heads, {n_kv_heads} of keys and values")
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.head_dim = d_model // n_heads
        self.q_proj = nn.Linear(d_model, n_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(d_model, n_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(d_model, n_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(n_heads * self.head_dim, d_model, bias=False)

    def forward(self, query, key, value, mask=None):
        b, t, _ = query.shape
        q = self.q_proj(query).view(b, t, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(key).view(b, -1, self.n_kv_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(value).view(b, -1, self.n_kv_heads, self.head_dim).transpose(1, 2)
        times = self.n_heads // self.n_kv_heads
        k = k.repeat_interleave(times, dim=1)
        v = v.repeat_interleave(times, dim=1)
        scores = q @ k.transpose(-2, -1) / self.head_dim**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        out = torch.softmax(scores, dim=-1) @ v
        return self.o_proj(out.transpose(1, 2).reshape(b, t, -1))
