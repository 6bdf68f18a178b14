"""Rotary positions: halves by a function, and neighbouring columns by a module with a table."""

import torch
from torch import nn


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def apply_rotary(x, base=10000.0):
    length, width = x.shape[-2:]
    exponent = torch.arange(0, width, 2, dtype=torch.float64) / width
    inv_freq = 1.0 / base**exponent
    angles = torch.outer(torch.arange(length, dtype=torch.float64), inv_freq)
    angles = torch.cat((angles, angles), dim=-1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return x * cos + rotate_half(x) * sin


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, max_seq_len):
        super().__init__()
        theta = 10000.0 ** (-2.0 * torch.arange(dim // 2, dtype=torch.float64) / dim)
        phase = torch.arange(max_seq_len, dtype=torch.float64)[:, None] * theta[None, :]
        self.register_buffer("cos", phase.cos(), persistent=False)
        self.register_buffer("sin", phase.sin(), persistent=False)

    def forward(self, x):
        cos, sin = self.cos[: x.shape[-2]].to(x.dtype), self.sin[: x.shape[-2]].to(x.dtype)
        even, odd = x[..., 0::2], x[..., 1::2]
        turned_even = even * cos - odd * sin
        turned_odd = odd * cos + even * sin
        return torch.stack((turned_even, turned_odd), dim=-1).flatten(-2)
