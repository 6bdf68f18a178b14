from functools import lru_cache

import torch
from torch import nn


@lru_cache(maxsize=8)
def _table(length, dim, base):
    inv = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim))
    angle = torch.outer(torch.arange(length, dtype=torch.float64), inv)
    return angle.cos(), angle.sin()


class RotaryPositionEncoding(nn.Module):
    def __init__(self, dim: int, base: float = 10000.0):
        super().__init__()
        self.dim, self.base = dim, base

    def forward(self, x, offset: int = 0):
        length = offset + x.size(-2)
        cos, sin = (t[offset:].to(x) for t in _table(length, self.dim, self.base))
        left, right = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((left * cos - right * sin, right * cos + left * sin), -1).flatten(-2)
