"""A decoder layer whose target has a mask (T, T), and its memory one of padding (B, S)."""

import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, self.width = heads, d_model // heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, memory, keep=None):
        q, k, v = (
            linear(given).unflatten(-1, (self.heads, self.width)).transpose(1, 2)
            for linear, given in ((self.q, x), (self.k, memory), (self.v, memory))
        )
        scores = q @ k.mT / math.sqrt(self.width)
        if keep is not None:
            scores = scores.masked_fill(~keep, -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, dropout=0.0):
        super().__init__()
        self.self_attn, self.cross_attn = Attention(d_model, heads), Attention(d_model, heads)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, x, memory, tgt_mask=None, memory_mask=None):
        """tgt_mask (T, T) and memory_mask (B, S) are booleans: True may be attended."""
        steps = x.shape[1]
        own = None if tgt_mask is None else tgt_mask.view(1, 1, steps, steps)
        keep = None if memory_mask is None else memory_mask[:, None, None, :]
        x = self.norm1(x + self.drop(self.self_attn(x, x, own)))
        x = self.norm2(x + self.drop(self.cross_attn(x, memory, keep)))
        return self.norm3(x + self.drop(self.ff(x)))
