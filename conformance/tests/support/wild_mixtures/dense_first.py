"""A decoder-only model whose first layer has a dense network, and whose others have experts."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


@dataclass
class Settings:
    vocab_size: int = 32000
    dim: int = 512
    n_layers: int = 8
    n_heads: int = 8
    hidden_dim: int = 2048
    max_seq_len: int = 1024
    n_experts: int = 8
    top_k: int = 2
    first_dense: int = 1


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


class SelfAttention(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads = s.n_heads
        self.qkv = nn.Linear(s.dim, 3 * s.dim, bias=False)
        self.out = nn.Linear(s.dim, s.dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Dense(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Experts(nn.Module):
    """Packed experts, with one that all tokens share, and a loss that balances them."""

    def __init__(self, s):
        super().__init__()
        self.k = s.top_k
        self.router = nn.Linear(s.dim, s.n_experts, bias=False)
        self.up = nn.Parameter(torch.randn(s.n_experts, s.dim, s.hidden_dim) * 0.02)
        self.down = nn.Parameter(torch.randn(s.n_experts, s.hidden_dim, s.dim) * 0.02)
        self.shared = Dense(s.dim, s.hidden_dim)
        self.loss = torch.zeros(())

    def forward(self, x):
        scores = self.router(x).softmax(-1)
        weights, chosen = scores.topk(self.k, -1)
        self.loss = scores.square().sum()
        rows = torch.stack(
            [(x @ u).relu() @ d for u, d in zip(self.up, self.down, strict=True)], -2
        )
        own = rows.gather(-2, chosen[..., None].expand(*chosen.shape, x.shape[-1]))
        return (own * weights[..., None]).sum(-2) + self.shared(x), self.loss


class MoEFeedForward(Experts):
    pass


class Layer(nn.Module):
    def __init__(self, s, number):
        super().__init__()
        self.attention = SelfAttention(s)
        self.attention_norm, self.ffn_norm = Norm(s.dim), Norm(s.dim)
        is_dense = number < s.first_dense
        self.ffn = Dense(s.dim, s.hidden_dim) if is_dense else MoEFeedForward(s)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        if isinstance(self.ffn, MoEFeedForward):
            y, _ = self.ffn(self.ffn_norm(x))
            return x + y + 0 * self.ffn.loss
        return x + self.ffn(self.ffn_norm(x))


class TinyGPT(nn.Module):
    def __init__(self, settings: Settings):
        super().__init__()
        s = settings
        self.tokens = nn.Embedding(s.vocab_size, s.dim)
        self.places = nn.Embedding(s.max_seq_len, s.dim)
        self.layers = nn.ModuleList(Layer(s, number) for number in range(s.n_layers))
        self.norm = Norm(s.dim)
        self.head = nn.Linear(s.dim, s.vocab_size, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
