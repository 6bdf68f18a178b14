import torch
from torch import nn


class RotaryPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, n_heads: int, max_len: int = 512):
        super().__init__()
        width = d_model // n_heads
        angle = torch.arange(max_len)[:, None] * torch.exp(
            -torch.arange(0, width, 2) / width * torch.log(torch.tensor(10000.0))
        )
        self.register_buffer("cos", torch.cos(angle), persistent=False)
        self.register_buffer("sin", torch.sin(angle), persistent=False)

    def forward(self, x):
        cos, sin = self.cos[: x.size(2)], self.sin[: x.size(2)]
        x1, x2 = torch.chunk(x, 2, dim=-1)
        return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], dim=-1)
