"""RMS norms: a module that spells every step, and a function that is given the weight."""

import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        power = x.pow(2).mean(-1, keepdim=True)
        inverse = torch.rsqrt(power + self.eps)
        normed = x * inverse
        return normed * self.weight


class RootMeanSquareNorm(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        root = length / x.shape[-1] ** 0.5
        return self.scale * x / root.clamp(min=1e-8)
