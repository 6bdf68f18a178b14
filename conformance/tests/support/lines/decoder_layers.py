"""Decoder layers."""

import math

import torch
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is no multiple of heads {heads}")
        self.heads = heads
        self.to_q = nn.Linear(width, width)
        self.to_k = nn.Linear(width, width)
        self.to_v = nn.Linear(width, width)
        self.to_o = nn.Linear(width, width)

    def split(self, t):
        return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, y, mask):
        q, k, v = self.split(self.to_q(x)), self.split(self.to_k(y)), self.split(self.to_v(y))
        dots = torch.einsum("bhqe,bhke->bhqk", q, k) / math.sqrt(q.size(-1))
        if mask is not None:
            dots = dots.masked_fill(~mask, -torch.inf)
        mixed = torch.einsum("bhqk,bhke->bqhe", dots.softmax(-1), v)
        return self.to_o(mixed.flatten(2))


class DecoderLayer(nn.Module):
    """Post-norm: self-attention, attention to the memory, feed-forward."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.1):
        super().__init__()
        self.self_attn = MultiHead(d_model, num_heads)
        self.cross_attn = MultiHead(d_model, num_heads)
        self.ff1, self.ff2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory, src_mask=None, tgt_mask=None):
        sa = self.self_attn(x, x, tgt_mask)
        x = self.norm1(x + self.dropout(sa))
        ca = self.cross_attn(x, memory, src_mask)
        x = self.norm2(x + self.dropout(ca))
        ff = self.ff2(self.ff1(x).relu())
        return self.norm3(x + self.dropout(ff))


class PreNormDecoderLayer(nn.Module):
    """Pre-norm, states named h."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1):
        super().__init__()
        self.attn = MultiHead(d_model, nhead)
        self.enc_attn = MultiHead(d_model, nhead)
        self.mlp = nn.Sequential(
            nn.Linear(d_model, dim_feedforward),
            nn.ReLU(),
            nn.Linear(dim_feedforward, d_model),
        )
        self.ln_attn = nn.LayerNorm(d_model)
        self.ln_enc = nn.LayerNorm(d_model)
        self.ln_mlp = nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, h, memory, memory_mask=None, tgt_mask=None):
        normed = self.ln_attn(h)
        h = h + self.drop(self.attn(normed, normed, tgt_mask))
        normed = self.ln_enc(h)
        h = h + self.drop(self.enc_attn(normed, memory, memory_mask))
        normed = self.ln_mlp(h)
        return h + self.drop(self.mlp(normed))
