"""Rotary positions by a complex table that the module keeps in a buffer."""

import torch
from torch import Tensor, nn


class RotaryTurns(nn.Module):
    def __init__(self, head_dim: int, seq_len: int, theta: float = 10000.0):
        super().__init__()
        half = head_dim // 2
        rates = theta ** -(torch.arange(half) / half)
        angles = torch.outer(torch.arange(seq_len), rates)
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
        turned = pairs * self.turns[: x.size(-2)].to(pairs)
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)
