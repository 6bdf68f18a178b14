"""Sound and common code that the spec does not cover."""

import math

import torch
from multi_head_attention import MultiHeadedAttention
from parts import PositionwiseFeedForward
from torch import nn
from torch.nn import functional


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class PlusOneNorm(RMSNorm):
    """Stores its weight less one."""

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * (1 + self.weight)


class LayerNorm(RMSNorm):
    """Is called a layer norm, as in one well-known library."""


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class GEGLU(nn.Module):
    """Holds both projections in one."""

    def __init__(self, dim, mult=4):
        super().__init__()
        self.net = nn.Linear(dim, 2 * mult * dim)
        self.out = nn.Linear(mult * dim, dim)

    def forward(self, x):
        value, gate = self.net(x).chunk(2, dim=-1)
        return self.out(value * functional.gelu(gate))


def rotated(x):
    """Turn pairs of features by an angle for every position."""
    half = x.size(-1) // 2
    speeds = 2000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    angles = torch.arange(x.size(-2), dtype=x.dtype)[:, None] * speeds
    first, second = x[..., :half], x[..., half:]
    turned = (first * angles.cos() - second * angles.sin(), first * angles.sin())
    return torch.cat((turned[0], turned[1] + second * angles.cos()), -1)


class RotaryAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x, mask=None):
        q, k, v = (self.split(one(x)) for one in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotated(q), rotated(k)
        scores = q @ k.mT / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(-2))


class CausalWithMask(nn.Module):
    """Self-attention that hides later positions, and takes a mask of padding besides."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.inner = MultiHeadedAttention(num_heads, d_model, 0.0)

    def forward(self, x, mask=None):
        causal = torch.ones(1, x.size(1), x.size(1), dtype=torch.bool).tril()
        whole = causal if mask is None else causal & mask[:, None, :]
        return self.inner(x, x, x, whole)


class GroupedQueryAttention(nn.Module):
    """Has a head of keys for every four heads, and one for fewer."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.groups = num_heads, max(1, num_heads // 4)
        self.width = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, self.groups * self.width)
        self.v_proj = nn.Linear(d_model, self.groups * self.width)
        self.o_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        times = self.num_heads // self.groups
        q = self.q_proj(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        k, v = (
            one(x).unflatten(-1, (self.groups, -1)).transpose(1, 2).repeat_interleave(times, 1)
            for one in (self.k_proj, self.v_proj)
        )
        weights = (q @ k.mT / math.sqrt(self.width)).softmax(-1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(-2))


class EncoderLayer(nn.Module):
    """Has RMS norms."""

    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.self_attn = MultiHeadedAttention(heads, d_model, 0.0)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, 0.0)
        self.norm1 = RMSNorm(d_model)
        self.norm2 = RMSNorm(d_model)

    def forward(self, x, mask=None):
        normal = self.norm1(x)
        x = x + self.self_attn(normal, normal, normal, mask)
        return x + self.feed_forward(self.norm2(x))


class NormedQueries(nn.Module):
    """Norms its queries and keys: there are more parameters than the spec has."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.inner = MultiHeadedAttention(num_heads, d_model, 0.0)
        self.q_norm = nn.LayerNorm(d_model)
        self.k_norm = nn.LayerNorm(d_model)

    def forward(self, query, key, value, mask=None):
        return self.inner(self.q_norm(query), self.k_norm(key), value, mask)


class FeedForward(nn.Module):
    """Holds the norm in front of it, as in vision Transformers."""

    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, hidden_dim), nn.GELU(), nn.Linear(hidden_dim, dim)
        )

    def forward(self, x):
        return self.net(x)


def causal_attention(q, k, v):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(later, -torch.inf).softmax(-1) @ v


class NormalisedTable(nn.Module):
    """Sines whose rows have the length 1."""

    def __init__(self, d_model, max_len=64):
        super().__init__()
        place = torch.arange(max_len, dtype=torch.float64)[:, None]
        waves = place * 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        rows = torch.stack([waves.sin(), waves.cos()], -1).flatten(1)
        self.register_buffer("rows", rows / rows.norm(dim=-1, keepdim=True))

    def forward(self, x):
        return x + self.rows[: x.size(1)]


class OnePlusNorm(nn.Module):
    """A layer norm whose weight is 0 at first."""

    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:], self.gamma + 1.0)


class Sines(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        place = torch.arange(max_len, dtype=torch.float64)[:, None]
        waves = place * 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        rows = torch.stack([waves.sin(), waves.cos()], -1).flatten(1)
        self.register_buffer("rows", rows, persistent=False)


class ScaledInput(Sines):
    """Scales the embeddings, too."""

    def forward(self, x):
        return x * x.size(-1) ** 0.5 + self.rows[: x.size(1)]


class TrainedScale(Sines):
    """Learns how much of the table is added."""

    def __init__(self, d_model, max_len=64):
        super().__init__(d_model, max_len)
        self.alpha = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return x + self.alpha * self.rows[: x.size(1)]


class DecoderLayer(nn.Module):
    """A decoder layer; subclasses hide later positions, or turn queries and keys."""

    causal = rotary = False

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.num_heads = num_heads
        self.self_attn, self.cross_attn = (
            nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4)) for _ in range(2)
        )
        self.ffn = PositionwiseFeedForward(d_model, d_ff)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))

    def attend(self, maps, x, memory, mask, causal=False):
        split = (self.num_heads, -1)
        q, k, v = (
            one(given).unflatten(-1, split).transpose(1, 2)
            for one, given in zip(maps, (x, memory, memory), strict=False)
        )
        if self.rotary:
            q, k = rotated(q), rotated(k)
        scores = q @ k.mT / math.sqrt(q.size(-1))
        if causal:
            keep = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            scores = scores.masked_fill(~keep, -1e9)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return maps[3]((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def forward(self, x, memory, src_mask=None, tgt_mask=None):
        one, two, three = self.norms
        x = one(x + self.attend(self.self_attn, x, x, tgt_mask, self.causal))
        x = two(x + self.attend(self.cross_attn, x, memory, src_mask))
        return three(x + self.ffn(x))


class CausalDecoderLayer(DecoderLayer):
    causal = True


class RotaryDecoderLayer(DecoderLayer):
    rotary = True
