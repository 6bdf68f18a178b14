"""Multi-head self-attention: one packed map, einops, and a list of one map per head."""

import torch
from einops import rearrange
from torch import nn


class SelfAttention(nn.Module):
    """One packed map for queries, keys and values; the mask is additive."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"d_model={d_model} must be a multiple of num_heads={num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, attn_mask=None):
        q, k, v = rearrange(
            self.qkv(x), "b t (three h e) -> three b h t e", three=3, h=self.num_heads
        )
        dots = torch.einsum("bhte,bhse->bhts", q, k) * q.shape[-1] ** -0.5
        if attn_mask is not None:
            dots = dots + attn_mask
        mixed = torch.einsum("bhts,bhse->bhte", dots.softmax(dim=-1), v)
        return self.proj(rearrange(mixed, "b h t e -> b t (h e)"))


class Head(nn.Module):
    """One head: three maps of its own."""

    def __init__(self, n_embd, head_size):
        super().__init__()
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.head_size = head_size

    def forward(self, q, k, v, mask=None):
        wei = self.query(q) @ self.key(k).transpose(-2, -1) / self.head_size**0.5
        if mask is not None:
            wei = wei.masked_fill(mask == 0, float("-inf"))
        wei = torch.softmax(wei, dim=-1)
        return wei @ self.value(v)


class MultiHeadAttention(nn.Module):
    """Heads one after the other; mask (B, T, S), 0 where a key is hidden."""

    def __init__(self, n_embd, n_head):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd {n_embd} is not divisible by n_head {n_head}")
        self.heads = nn.ModuleList(Head(n_embd, n_embd // n_head) for _ in range(n_head))
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, query, key, value, mask=None):
        out = torch.cat([h(query, key, value, mask) for h in self.heads], dim=-1)
        return self.proj(out)
