"""Layers of an encoder: a norm by hand, a network in one expression, and a layer of functions."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class LayerNormalization(nn.Module):
    def __init__(self, features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.alpha = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        spread = centred.pow(2).mean(dim=-1, keepdim=True)
        return self.alpha * centred * (spread + self.eps).rsqrt() + self.bias


class EncoderLayer(nn.Module):
    """A pre-norm layer with torch's attention; mask (B, S) is True at padding."""

    def __init__(self, d_model, num_heads, dim_feedforward):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, num_heads, bias=False, batch_first=True)
        self.norm_attention = nn.LayerNorm(d_model)
        self.norm_network = nn.LayerNorm(d_model)
        self.expand = nn.Linear(d_model, dim_feedforward)
        self.contract = nn.Linear(dim_feedforward, d_model)

    def forward(self, x, src_key_padding_mask=None):
        normed = self.norm_attention(x)
        attended, _ = self.attention(normed, normed, normed, key_padding_mask=src_key_padding_mask)
        x = x + attended
        inner = F.relu(self.expand(self.norm_network(x)))
        return x + self.contract(inner)


class PositionalEncoding(nn.Module):
    """Adds the table to batches (B, T, D)."""

    def __init__(self, d_model, max_len=512):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        rate = torch.pow(10000.0, -torch.arange(0, d_model, 2) / d_model)
        table = torch.zeros(max_len, d_model)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)
        self.register_buffer("table", table.unsqueeze(0))

    def forward(self, x):
        return x + self.table[:, : x.size(1)]
