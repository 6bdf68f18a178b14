"""A masked language model: layers in a list, segments, a mask made of the ids."""

import math

import torch
import torch.nn as nn
from torch.nn import functional


class SelfAttention(nn.Module):
    def __init__(self, hidden, heads, dropout=0.1):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(hidden, hidden)
        self.k = nn.Linear(hidden, hidden)
        self.v = nn.Linear(hidden, hidden)
        self.o = nn.Linear(hidden, hidden)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask):
        batch, length, width = x.shape
        parts = (one(x) for one in (self.q, self.k, self.v))
        q, k, v = (one.view(batch, length, self.heads, -1).transpose(1, 2) for one in parts)
        s = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        s = s.masked_fill(mask == 0, -1e9)
        return self.o((self.drop(s.softmax(-1)) @ v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, hidden, heads, ffn, dropout):
        super().__init__()
        self.attn = SelfAttention(hidden, heads, dropout)
        self.ln1 = nn.LayerNorm(hidden, eps=1e-12)
        self.up = nn.Linear(hidden, ffn)
        self.down = nn.Linear(ffn, hidden)
        self.ln2 = nn.LayerNorm(hidden, eps=1e-12)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask):
        x = self.ln1(x + self.drop(self.attn(x, mask)))
        return self.ln2(x + self.drop(self.down(functional.gelu(self.up(x)))))


class BERT(nn.Module):
    def __init__(
        self,
        vocab_size,
        hidden=768,
        n_layers=12,
        attn_heads=12,
        ffn_hidden=3072,
        max_len=512,
        dropout=0.1,
    ):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, hidden, padding_idx=0)
        self.pos = nn.Embedding(max_len, hidden)
        self.seg = nn.Embedding(3, hidden)
        self.ln = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.ModuleList(
            Layer(hidden, attn_heads, ffn_hidden, dropout) for _ in range(n_layers)
        )
        self.mlm = nn.Linear(hidden, vocab_size)

    def forward(self, x, segment_info):
        mask = (x > 0)[:, None, None, :]
        h = (
            self.tok(x)
            + self.pos(torch.arange(x.size(1), device=x.device))
            + self.seg(segment_info)
        )
        h = self.ln(h)
        for layer in self.layers:
            h = layer(h, mask)
        return self.mlm(h)
