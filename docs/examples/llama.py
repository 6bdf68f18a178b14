"""A decoder-only language model, written without attentest."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass
class Config:
    """The sizes of a model."""

    vocab_size: int = 128
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    hidden_dim: int = 48


class RMSNorm(nn.Module):
    """Divide by the root mean square."""

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        """Return x (.., dim), normalised."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x: Tensor) -> Tensor:
    """Turn x (batch, heads, length, width) by its positions, in pairs of both halves."""
    half = x.shape[-1] // 2
    waves = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float64) / half)
    angles = torch.outer(torch.arange(x.shape[-2], device=x.device), waves).to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Attention(nn.Module):
    """Causal attention whose heads share keys and values in groups."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        if config.dim % config.n_heads or config.n_heads % config.n_kv_heads:
            raise ValueError(f"{config} has heads that do not divide its width or one another")
        self.heads, self.groups = config.n_heads, config.n_kv_heads
        shared = config.dim // config.n_heads * config.n_kv_heads
        self.wq = nn.Linear(config.dim, config.dim, bias=False)
        self.wk = nn.Linear(config.dim, shared, bias=False)
        self.wv = nn.Linear(config.dim, shared, bias=False)
        self.wo = nn.Linear(config.dim, config.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return x (batch, length, dim) after attention."""
        q = rotate(self.wq(x).unflatten(-1, (self.heads, -1)).transpose(1, 2))
        k = rotate(self.wk(x).unflatten(-1, (self.groups, -1)).transpose(1, 2))
        v = self.wv(x).unflatten(-1, (self.groups, -1)).transpose(1, 2)
        k = k.repeat_interleave(self.heads // self.groups, dim=1)
        v = v.repeat_interleave(self.heads // self.groups, dim=1)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.gate = nn.Linear(config.dim, config.hidden_dim, bias=False)
        self.up = nn.Linear(config.dim, config.hidden_dim, bias=False)
        self.down = nn.Linear(config.hidden_dim, config.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return x (batch, length, dim) after the network."""
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """A layer with its norms before the sublayers."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention, self.attention_norm = Attention(config), RMSNorm(config.dim)
        self.network, self.network_norm = FeedForward(config), RMSNorm(config.dim)

    def forward(self, x: Tensor) -> Tensor:
        """Return x (batch, length, dim) after the layer."""
        x = x + self.attention(self.attention_norm(x))
        return x + self.network(self.network_norm(x))


class Llama(nn.Module):
    """Embedding, layers, norm, logits."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.dim)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.norm = RMSNorm(config.dim)
        self.output = nn.Linear(config.dim, config.vocab_size, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits (batch, length, vocabulary) for tokens (batch, length)."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))
