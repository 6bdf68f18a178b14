import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        self.dim, self.base = dim, base

    def forward(self, x):
        seq_len = x.shape[1]
        inv_freq = 1.0 / (
            self.base ** (torch.arange(0, self.dim, 2, device=x.device).float() / self.dim)
        )
        t = torch.arange(seq_len, device=x.device).type_as(inv_freq)
        freqs = torch.outer(t, inv_freq)
        return freqs.cos()[None, :, None, :].to(x.dtype), freqs.sin()[None, :, None, :].to(x.dtype)


def apply_rotary_emb(x, cos, sin):
    d = x.shape[3] // 2
    x1, x2 = x[..., :d], x[..., d:]
    y1 = x1 * cos + x2 * sin
    y2 = x1 * (-sin) + x2 * cos
    return torch.cat([y1, y2], 3)
