"""Gated feed-forward networks in the styles of published models, each written anew."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as people write it


class FeedForward(nn.Module):
    """Numbered matrices: w1 is the gate."""

    def __init__(self, dim: int, hidden_dim: int, dropout: float = 0.0):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.w2(F.silu(self.w1(x)) * self.w3(x)))


@dataclass
class Config:
    hidden_size: int = 16
    intermediate_size: int = 32


class LlamaStyleMLP(nn.Module):
    """Names that say what they are, and a config."""

    def __init__(self, config: Config):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class PackedMLP(nn.Module):
    """Gate and value packed, the gate first."""

    def __init__(self, hidden_size, intermediate_size):
        super().__init__()
        self.gate_up_proj = nn.Linear(hidden_size, 2 * intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)

    def forward(self, x):
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(up * F.silu(gate))


class GEGLU(nn.Module):
    """The value first, with biases and an exact GELU."""

    def __init__(self, dim, inner_dim):
        super().__init__()
        self.proj = nn.Linear(dim, inner_dim * 2)
        self.back = nn.Linear(inner_dim, dim)

    def forward(self, x):
        x, gate = self.proj(x).chunk(2, dim=-1)
        return self.back(x * F.gelu(gate))


class GemmaStyleMLP(nn.Module):
    """A GELU by tanh."""

    def __init__(self, hidden_size: int, intermediate_size: int):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size)
        self.up_proj = nn.Linear(hidden_size, intermediate_size)
        self.down_proj = nn.Linear(intermediate_size, hidden_size)

    def forward(self, x):
        gate = F.gelu(self.gate_proj(x), approximate="tanh")
        return self.down_proj(gate * self.up_proj(x))


class SwiGLU(nn.Module):
    """Matrices as in the paper: W, V and W2."""

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.W = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)
        self.V = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)
        self.W2 = nn.Parameter(torch.randn(d_ff, d_model) / d_ff**0.5)

    def forward(self, x):
        return (F.silu(x @ self.W) * (x @ self.V)) @ self.W2


class GatedMLP(nn.Module):
    """A sigmoid written out."""

    def __init__(self, n_embd, n_inner):
        super().__init__()
        self.c_fc1 = nn.Linear(n_embd, n_inner, bias=False)
        self.c_fc2 = nn.Linear(n_embd, n_inner, bias=False)
        self.c_proj = nn.Linear(n_inner, n_embd, bias=False)

    def forward(self, x):
        x1 = self.c_fc1(x)
        return self.c_proj(x1 * torch.sigmoid(x1) * self.c_fc2(x))


class ReGLU(nn.Module):
    """A ReLU as a maximum."""

    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(dim, hidden)
        self.value = nn.Linear(dim, hidden)
        self.out = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.out(torch.clamp(self.gate(x), min=0) * self.value(x))


class GluFeedForward(nn.Module):
    """The library's gated linear unit."""

    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(d_model, 2 * d_ff), nn.GLU(), nn.Dropout(dropout), nn.Linear(d_ff, d_model)
        )

    def forward(self, x):
        return self.net(x)


class NumberedSwiGLU(nn.Module):
    """w1 and w2 go in, w3 comes out."""

    def __init__(self, in_features: int, hidden_features: int):
        super().__init__()
        self.w1 = nn.Linear(in_features, hidden_features)
        self.w2 = nn.Linear(in_features, hidden_features)
        self.w3 = nn.Linear(hidden_features, in_features)

    def forward(self, x):
        return self.w3(F.silu(self.w1(x)) * self.w2(x))
