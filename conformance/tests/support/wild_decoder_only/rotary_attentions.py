"""Attention with positions inside, in published styles."""

import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as people write it


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def check_heads(dim, n_heads):
    if dim % n_heads:
        raise ValueError(f"dim {dim} cannot be divided among {n_heads} heads")


class BufferedRotaryAttention(nn.Module):
    """Frequencies in a buffer, halves, grouped heads, causal by itself."""

    def __init__(self, dim, n_heads, n_kv_heads=None, base=10000.0):
        super().__init__()
        check_heads(dim, n_heads)
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
        self.head_dim = dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, self.n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, self.n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)
        inv = 1.0 / base ** (torch.arange(0, self.head_dim, 2).float() / self.head_dim)
        self.register_buffer("inv_freq", inv, persistent=False)

    def angles(self, length, x):
        places = torch.arange(length, device=x.device, dtype=torch.float32)
        emb = torch.outer(places, self.inv_freq.float()).repeat(1, 2)
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)

    def turn(self, q, k, v, cos, sin):
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin, v

    def forward(self, x, mask=None):
        batch, length, _ = x.shape
        q = self.wq(x).view(batch, length, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(batch, length, self.n_kv_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(batch, length, self.n_kv_heads, self.head_dim).transpose(1, 2)
        q, k, v = self.turn(q, k, v, *self.angles(length, x))
        times = self.n_heads // self.n_kv_heads
        k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        causal = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        scores = scores.masked_fill(~causal, float("-inf"))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        out = torch.softmax(scores, dim=-1) @ v
        return self.wo(out.transpose(1, 2).reshape(batch, length, -1))


class ComplexRotaryAttention(nn.Module):
    """Adjacent pairs as complex numbers, fused kernel, causal by itself."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        check_heads(d_model, num_heads)
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def rotate(self, x):
        *_, length, width = x.shape
        powers = torch.arange(0, width, 2, device=x.device)[: width // 2].double() / width
        angles = torch.outer(torch.arange(length, device=x.device).double(), 10000.0**-powers)
        turns = torch.polar(torch.ones_like(angles), angles)
        wide = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(wide * turns).flatten(-2).to(x.dtype)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            one(x).view(batch, length, self.num_heads, -1).transpose(1, 2)
            for one in (self.q_proj, self.k_proj, self.v_proj)
        )
        out = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        return self.out_proj(out.transpose(1, 2).reshape(batch, length, width))


class RotaryEncoderAttention(nn.Module):
    """Positions of an encoder: no key is hidden but by the mask, and one packed projection."""

    def __init__(self, dim, heads):
        super().__init__()
        check_heads(dim, heads)
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        size = q.shape[-1]
        freqs = 10000.0 ** (-torch.arange(0, size, 2, device=x.device, dtype=x.dtype) / size)
        angles = torch.arange(length, device=x.device, dtype=x.dtype)[:, None] * freqs
        cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        scores = q @ k.transpose(-2, -1) * size**-0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        out = scores.softmax(-1) @ v
        return self.proj(out.transpose(1, 2).reshape(batch, length, width))
