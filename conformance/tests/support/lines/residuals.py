"""Residual connections with their norm."""

import torch
from torch import nn


class SublayerConnection(nn.Module):
    """Post-norm, as in the paper."""

    def __init__(self, size, dropout=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, sublayer):
        branch = self.dropout(sublayer(x))
        total = x + branch
        return self.norm(total)


class PreNormResidual(nn.Module):
    def __init__(self, d_model, dropout=0.1):
        super().__init__()
        self.ln = nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, sublayer):
        y = self.ln(x)
        y = sublayer(y)
        return torch.add(x, self.drop(y))
