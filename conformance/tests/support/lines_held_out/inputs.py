"""Inputs and outputs of a stack: positions by complex numbers, one-hot rows, logits."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class PositionalEncoding(nn.Module):
    """Sine and cosine as parts of a complex exponential."""

    def __init__(self, d_model, max_len=64):
        super().__init__()
        if d_model % 2:
            raise ValueError(f"d_model has to be even, not {d_model}")
        self.max_len, self.half = max_len, d_model // 2

    def forward(self, x):
        if x.size(-2) > self.max_len:
            raise ValueError(f"{x.size(-2)} positions, at most {self.max_len}")
        time = torch.arange(x.size(-2), dtype=torch.float64, device=x.device)
        pairs = torch.arange(self.half, dtype=torch.float64, device=x.device)
        phase = torch.outer(time, 10000 ** (-pairs / self.half))
        turn = torch.polar(torch.ones_like(phase), phase)
        wave = torch.stack((turn.imag, turn.real), dim=-1)
        wave = wave.flatten(-2)
        return x.add(wave.to(x.dtype))


class Embeddings(nn.Module):
    """Rows by a product with one-hot vectors."""

    def __init__(self, d_model, vocab):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab, d_model) * 0.1)

    def forward(self, ids):
        if (ids < 0).any() or (ids >= self.weight.size(0)).any():
            raise IndexError(f"an id is not in 0 .. {self.weight.size(0) - 1}")
        rows = F.one_hot(ids, self.weight.size(0)).to(self.weight.dtype)
        return torch.matmul(rows, self.weight) * self.weight.size(1) ** 0.5


class Generator(nn.Module):
    def __init__(self, d_model, vocab):
        super().__init__()
        self.linear = nn.Linear(d_model, vocab, bias=False)

    def forward(self, x):
        score = self.linear(x)
        score = score - score.max(dim=-1, keepdim=True).values
        mass = score.exp()
        return mass / mass.sum(dim=-1, keepdim=True)
