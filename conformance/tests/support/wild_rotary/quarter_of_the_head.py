import torch
from torch import nn


class NeoXRotary(nn.Module):
    def __init__(self, head_size, max_seq_len, rotary_pct=0.25, base=10000):
        super().__init__()
        self.rotary_ndims = int(head_size * rotary_pct)
        inv = 1.0 / (base ** (torch.arange(0, self.rotary_ndims, 2).double() / self.rotary_ndims))
        angles = torch.outer(torch.arange(max_seq_len).double(), inv)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, q, k, offset=0):
        return self.turn(q, offset), self.turn(k, offset)

    def turn(self, x, offset):
        rot, keep = x[..., : self.rotary_ndims], x[..., self.rotary_ndims :]
        cos = self.cos[offset : offset + x.shape[-2]]
        sin = self.sin[offset : offset + x.shape[-2]]
        a, b = rot.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin, keep), dim=-1)
