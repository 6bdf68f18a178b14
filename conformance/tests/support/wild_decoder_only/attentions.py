"""Attention with fewer heads of keys and values, or causal inside, in published styles."""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as people write it


def repeat_kv(x, times):
    """Repeat every head of (B, G, L, E) `times` times in a row."""
    if times == 1:
        return x
    batch, groups, length, width = x.shape
    x = x[:, :, None].expand(batch, groups, times, length, width)
    return x.reshape(batch, groups * times, length, width)


class GroupedQueryAttention(nn.Module):
    """The usual one, without positions."""

    def __init__(self, dim: int, n_heads: int, n_kv_heads: int):
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.head_dim = dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)

    def forward(self, x, mask=None):
        batch, length, _ = x.shape
        q = self.wq(x).view(batch, length, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(batch, length, self.n_kv_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(batch, length, self.n_kv_heads, self.head_dim).transpose(1, 2)
        k = repeat_kv(k, self.n_heads // self.n_kv_heads)
        v = repeat_kv(v, self.n_heads // self.n_kv_heads)
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores + mask
        weights = F.softmax(scores, dim=-1)
        return self.wo((weights @ v).transpose(1, 2).reshape(batch, length, -1))


@dataclass
class Config:
    n_embd: int = 16
    n_head: int = 4
    n_kv_head: int = 2


class GroupedSelfAttention(nn.Module):
    """Causal inside, by the library's function, with a config."""

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        width = config.n_embd // config.n_head
        self.q_proj = nn.Linear(config.n_embd, config.n_head * width, bias=False)
        self.k_proj = nn.Linear(config.n_embd, config.n_kv_head * width, bias=False)
        self.v_proj = nn.Linear(config.n_embd, config.n_kv_head * width, bias=False)
        self.o_proj = nn.Linear(config.n_embd, config.n_embd, bias=False)

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (
            f(x).view(b, t, -1, c // self.config.n_head).transpose(1, 2)
            for f in (self.q_proj, self.k_proj, self.v_proj)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).contiguous().view(b, t, c))


class CausalSelfAttention(nn.Module):
    """Packed, causal by a buffer."""

    def __init__(self, n_embd: int, n_head: int, block_size: int = 64):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        earlier = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("bias", earlier.view(1, 1, block_size, block_size))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (
            one.view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
            for one in self.c_attn(x).split(c, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        y = scores.softmax(dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))


class PackedGroupedAttention(nn.Module):
    """Query, keys and values in one matrix of unequal parts."""

    def __init__(self, dim: int, n_head: int, n_kv_heads: int):
        super().__init__()
        self.n_head, self.n_kv = n_head, n_kv_heads
        self.width = dim // n_head
        self.wqkv = nn.Linear(dim, (n_head + 2 * n_kv_heads) * self.width, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        shared = self.n_kv * self.width
        q, k, v = self.wqkv(x).split([d, shared, shared], dim=-1)
        q = q.view(b, t, self.n_head, self.width).transpose(1, 2)
        k = k.view(b, t, self.n_kv, self.width).transpose(1, 2)
        v = v.view(b, t, self.n_kv, self.width).transpose(1, 2)
        k = k.repeat_interleave(self.n_head // self.n_kv, dim=1)
        v = v.repeat_interleave(self.n_head // self.n_kv, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, d))


class MultiQueryAttention(nn.Module):
    """Grouped scores by einsum, keys and values given apart."""

    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int):
        super().__init__()
        self.h, self.g, self.e = num_heads, num_kv_heads, d_model // num_heads
        self.q_proj = nn.Linear(d_model, self.h * self.e)
        self.k_proj = nn.Linear(d_model, self.g * self.e)
        self.v_proj = nn.Linear(d_model, self.g * self.e)
        self.out_proj = nn.Linear(self.h * self.e, d_model)

    def forward(self, query, key, value, mask=None):
        b, t, _ = query.shape
        q = self.q_proj(query).view(b, t, self.g, self.h // self.g, self.e)
        k = self.k_proj(key).view(b, -1, self.g, self.e)
        v = self.v_proj(value).view(b, -1, self.g, self.e)
        scores = torch.einsum("btgre,bsge->bgrts", q, k) * self.e**-0.5
        if mask is not None:
            keep = mask.expand(b, self.h, t, k.shape[1])
            keep = keep.reshape(b, self.g, self.h // self.g, t, k.shape[1])
            scores = scores.masked_fill(keep == 0, -1e9)
        mixed = torch.einsum("bgrts,bsge->btgre", scores.softmax(-1), v)
        return self.out_proj(mixed.reshape(b, t, self.h * self.e))


class TiledGroupedQueryAttention(GroupedQueryAttention):
    """The first one with its heads tiled: wrong."""

    def forward(self, x, mask=None):
        batch, length, _ = x.shape
        times = self.n_heads // self.n_kv_heads
        q = self.wq(x).view(batch, length, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(batch, length, self.n_kv_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(batch, length, self.n_kv_heads, self.head_dim).transpose(1, 2)
        k, v = k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1)  # wrong
        scores = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores + mask
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1))
