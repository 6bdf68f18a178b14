"""Positional encodings."""

import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=200, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        pe = torch.zeros(max_len, d_model, dtype=torch.float64)
        position = torch.arange(0, max_len, dtype=torch.float64).unsqueeze(1)
        exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
        div_term = torch.exp(exponents * -math.log(10000.0))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0), persistent=False)

    def forward(self, x):
        if x.size(1) > self.pe.size(1):
            raise ValueError(f"{x.size(1)} positions, the table has {self.pe.size(1)}")
        x = x + self.pe[:, : x.size(1)].to(x.dtype)
        return self.dropout(x)


class SinusoidalPositionalEncoding(nn.Module):
    """Computes the waves in every call."""

    def __init__(self, dim, max_length=512):
        super().__init__()
        self.dim, self.max_length = dim, max_length

    def forward(self, x):
        length = x.shape[1]
        if length > self.max_length:
            raise ValueError(f"length {length} exceeds max_length {self.max_length}")
        places = torch.arange(length, device=x.device, dtype=torch.float64)
        pair = torch.arange(self.dim, device=x.device) // 2
        rates = 10000 ** (-2 * pair.double() / self.dim)
        angles = places[:, None] * rates[None, :]
        even = torch.arange(self.dim, device=x.device) % 2 == 0
        waves = torch.where(even, angles.sin(), angles.cos())
        return x + waves.to(x.dtype)


class LearnedPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.positions = nn.Embedding(max_len, d_model)

    def forward(self, x):
        n = x.size(1)
        if n > self.positions.num_embeddings:
            raise ValueError(f"{n} positions, at most {self.positions.num_embeddings}")
        ids = torch.arange(n, device=x.device)
        return x + self.positions(ids)
