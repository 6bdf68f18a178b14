"""Layer norms."""

import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, features, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(features))
        self.beta = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        wide = x.double()
        mean = wide.mean(-1, keepdim=True)
        var = wide.var(-1, keepdim=True, unbiased=False)
        x_hat = (wide - mean) / torch.sqrt(var + self.eps)
        return (self.gamma * x_hat + self.beta).to(x.dtype)


class LayerNormByMoments(nn.Module):
    def __init__(self, d_model, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        wide = x.double()
        centred = wide - torch.mean(wide, dim=-1, keepdim=True)
        spread = centred.pow(2).mean(dim=-1, keepdim=True)
        normed = centred * torch.rsqrt(spread + self.eps)
        return torch.addcmul(self.bias, normed, self.weight).to(x.dtype)


class LayerNormOfStd(nn.Module):
    """Divides by the sample deviation plus epsilon."""

    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(size))
        self.b_2 = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x):
        mu = x.mean(-1, keepdim=True)
        sigma = x.std(-1, keepdim=True)
        return self.a_2 * (x - mu) / (sigma + self.eps) + self.b_2
