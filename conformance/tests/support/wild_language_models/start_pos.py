"""A decoder-only model that keeps keys in its attention, for at most `max_batch_size` texts."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


@dataclass
class ModelArgs:
    dim: int = 64
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    vocab_size: int = 100
    hidden_dim: int = 128
    norm_eps: float = 1e-5
    max_batch_size: int = 8
    max_seq_len: int = 128


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: dim // 2].double() / dim))
    t = torch.arange(end).double()
    freqs = torch.outer(t, freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(xq, xk, freqs_cis):
    xq_ = torch.view_as_complex(xq.double().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.double().reshape(*xk.shape[:-1], -1, 2))
    f = freqs_cis.view(1, xq_.shape[1], 1, xq_.shape[-1])
    turned = (torch.view_as_real(one * f).flatten(3) for one in (xq_, xk_))
    return tuple(one.type_as(xq) for one in turned)


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.n_heads, self.n_kv = args.n_heads, args.n_kv_heads
        self.hd = args.dim // args.n_heads
        self.wq = nn.Linear(args.dim, args.n_heads * self.hd, bias=False)
        self.wk = nn.Linear(args.dim, self.n_kv * self.hd, bias=False)
        self.wv = nn.Linear(args.dim, self.n_kv * self.hd, bias=False)
        self.wo = nn.Linear(args.n_heads * self.hd, args.dim, bias=False)
        self.cache_k = None
        self.cache_v = None
        self.args = args

    def forward(self, x, start_pos, freqs_cis, mask):
        b, t, _ = x.shape
        q = self.wq(x).view(b, t, self.n_heads, self.hd)
        k = self.wk(x).view(b, t, self.n_kv, self.hd)
        v = self.wv(x).view(b, t, self.n_kv, self.hd)
        q, k = apply_rotary_emb(q, k, freqs_cis)
        if self.cache_k is None or self.cache_k.dtype != x.dtype:
            shape = (self.args.max_batch_size, self.args.max_seq_len, self.n_kv, self.hd)
            self.cache_k = torch.zeros(shape, dtype=x.dtype, device=x.device)
            self.cache_v = torch.zeros(shape, dtype=x.dtype, device=x.device)
        self.cache_k[:b, start_pos : start_pos + t] = k.detach()
        self.cache_v[:b, start_pos : start_pos + t] = v.detach()
        keys = self.cache_k[:b, : start_pos + t].clone()
        values = self.cache_v[:b, : start_pos + t].clone()
        if start_pos == 0:
            keys, values = k, v
        rep = self.n_heads // self.n_kv
        keys = keys.repeat_interleave(rep, dim=2)
        values = values.repeat_interleave(rep, dim=2)
        q, keys, values = (z.transpose(1, 2) for z in (q, keys, values))
        s = q @ keys.transpose(2, 3) / math.sqrt(self.hd)
        if mask is not None:
            s = s + mask
        o = F.softmax(s, dim=-1) @ values
        return self.wo(o.transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.attention = Attention(args)
        self.feed_forward = FeedForward(args.dim, args.hidden_dim)
        self.attention_norm = RMSNorm(args.dim, args.norm_eps)
        self.ffn_norm = RMSNorm(args.dim, args.norm_eps)

    def forward(self, x, start_pos, freqs_cis, mask):
        h = x + self.attention(self.attention_norm(x), start_pos, freqs_cis, mask)
        return h + self.feed_forward(self.ffn_norm(h))


class Transformer(nn.Module):
    def __init__(self, params: ModelArgs):
        super().__init__()
        self.params = params
        self.tok_embeddings = nn.Embedding(params.vocab_size, params.dim)
        self.layers = nn.ModuleList(Block(params) for _ in range(params.n_layers))
        self.norm = RMSNorm(params.dim, params.norm_eps)
        self.output = nn.Linear(params.dim, params.vocab_size, bias=False)

    def forward(self, tokens: torch.Tensor, start_pos: int = 0):
        t = tokens.shape[1]
        h = self.tok_embeddings(tokens)
        width = self.params.dim // self.params.n_heads
        freqs = precompute_freqs_cis(width, self.params.max_seq_len * 2)
        freqs = freqs[start_pos : start_pos + t]
        mask = None
        if t > 1:
            mask = torch.full((t, t), float("-inf"), dtype=h.dtype).triu(1)
            mask = torch.hstack([torch.zeros((t, start_pos), dtype=h.dtype), mask])
        for layer in self.layers:
            h = layer(h, start_pos, freqs, mask)
        return self.output(self.norm(h))
