"""The same norms, each with one mistake."""

import torch
from torch import nn


class Weighted(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))


class SumRMSNorm(Weighted):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + self.eps) * self.weight  # wrong


class NoRootRMSNorm(Weighted):
    def forward(self, x):
        return x / (x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight  # wrong


class TimeRMSNorm(Weighted):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + self.eps) * self.weight  # wrong


class DeviationRMSNorm(Weighted):
    def forward(self, x):
        return x / (x.std(-1, keepdim=True) + self.eps) * self.weight  # wrong


class CentredRMSNorm(Weighted):
    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)  # wrong
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class AbsoluteRMSNorm(Weighted):
    def forward(self, x):
        return x / (x.abs().mean(-1, keepdim=True) + self.eps) * self.weight  # wrong


class UnweightedRMSNorm(Weighted):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)  # wrong


class DetachedRMSNorm(Weighted):
    def forward(self, x):
        size = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x * size.detach() * self.weight  # wrong


class SamplewiseRMSNorm(Weighted):
    def forward(self, x):
        return (
            x * torch.rsqrt(x.pow(2).mean((-2, -1), keepdim=True) + self.eps) * self.weight
        )  # wrong


class TwiceWeightedRMSNorm(Weighted):
    def forward(self, x):
        rows = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight
        return rows * self.weight  # wrong
