"""Rotary positions whose constructor calls the width of a head the width of a model."""

import torch
from torch import Tensor, nn


class RotaryEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int, theta: float = 10000.0):
        super().__init__()
        rates = theta ** -(torch.arange(0, d_model, 2).double() / d_model)
        angles = torch.arange(max_len).double()[:, None] * rates
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = self.cos[: x.size(-2)].to(x), self.sin[: x.size(-2)].to(x)
        turned = (first * cos - second * sin, first * sin + second * cos)
        return torch.stack(turned, -1).flatten(-2)
