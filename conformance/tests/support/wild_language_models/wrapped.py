"""A wrapper of tokens around a stack of sublayers in a flat list, norms inside of a shell."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import einsum, nn


def exists(val):
    return val is not None


def default(val, d):
    return val if exists(val) else d


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x):
        return self.fn(self.norm(x))


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x


class GEGLU(nn.Module):
    def __init__(self, dim_in, dim_out):
        super().__init__()
        self.proj = nn.Linear(dim_in, dim_out * 2)

    def forward(self, x):
        x, gate = self.proj(x).chunk(2, dim=-1)
        return x * F.gelu(gate)


def feed_forward(dim, mult=4):
    return nn.Sequential(GEGLU(dim, dim * mult), nn.Linear(dim * mult, dim))


class Attention(nn.Module):
    def __init__(self, dim, heads=8):
        super().__init__()
        if dim % heads:
            raise ValueError(f"{dim} columns cannot be divided among {heads} heads")
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, dim * 2, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        n = x.shape[1]
        q, k, v = self.to_q(x), *self.to_kv(x).chunk(2, dim=-1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
        sim = einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        causal = torch.ones((n, n), device=x.device, dtype=torch.bool).triu(1)
        sim = sim.masked_fill(causal, -torch.finfo(sim.dtype).max)
        out = einsum("b h i j, b h j d -> b h i d", sim.softmax(dim=-1), v)
        return self.to_out(out.transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    def __init__(self, dim, depth, heads):
        super().__init__()
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            self.layers.append(Residual(PreNorm(dim, Attention(dim, heads))))
            self.layers.append(Residual(PreNorm(dim, feed_forward(dim))))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class TransformerWrapper(nn.Module):
    def __init__(self, *, num_tokens, max_seq_len, dim, depth, heads=8):
        super().__init__()
        self.token_emb = nn.Embedding(num_tokens, dim)
        self.pos_emb = nn.Embedding(max_seq_len, dim)
        self.attn_layers = Decoder(dim, depth, heads)
        self.to_logits = nn.Linear(dim, num_tokens)

    def forward(self, x):
        x = self.token_emb(x)
        x = x + self.pos_emb(torch.arange(x.shape[1], device=x.device))
        return self.to_logits(self.attn_layers(x))
