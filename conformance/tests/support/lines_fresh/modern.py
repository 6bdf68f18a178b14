"""Parts of decoder-only models: a norm, a gate, a rotation, shared key heads."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        squares = torch.mean(torch.square(x), dim=-1, keepdim=True)
        return x / torch.sqrt(squares + self.eps) * self.weight


class LlamaMLP(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def apply_rotary_pos_emb(x, base=10000.0):
    """x (B, H, T, E)."""
    width = x.shape[-1]
    exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
    inv_freq = 1.0 / base**exponents
    positions = torch.arange(x.shape[-2], dtype=torch.float64)
    freqs = torch.outer(positions, inv_freq)
    angles = torch.cat((freqs, freqs), dim=-1)
    cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return x * cosines + rotate_half(x) * sines


class GroupedAttention(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads):
        super().__init__()
        if d_model % n_heads or n_heads % n_kv_heads:
            raise ValueError(f"width {d_model}, {n_heads} heads, {n_kv_heads} of keys")
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.head_dim = d_model // n_heads
        self.wq = nn.Linear(d_model, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(d_model, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(d_model, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, d_model, bias=False)

    def forward(self, query, key, value, mask=None):
        """mask is True where a key may be seen."""
        batch, length, _ = query.shape
        q = self.wq(query).view(batch, length, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.wk(key).view(batch, key.shape[1], self.n_kv_heads, self.head_dim)
        v = self.wv(value).view(batch, key.shape[1], self.n_kv_heads, self.head_dim)
        groups = self.n_heads // self.n_kv_heads
        k = k.repeat_interleave(groups, dim=2).transpose(1, 2)
        v = v.repeat_interleave(groups, dim=2).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.wo(out.transpose(1, 2).reshape(batch, length, -1))
