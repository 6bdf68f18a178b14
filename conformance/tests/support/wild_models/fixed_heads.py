"""Sound: post-norm model with torch's attention and a number of heads fixed in the code."""

import math

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, d_model, d_ff, dropout, cross):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, 4, batch_first=True, bias=False)
        self.cross = (
            nn.MultiheadAttention(d_model, 4, batch_first=True, bias=False) if cross else None
        )
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(3 if cross else 2)])
        self.drop = nn.Dropout(dropout)

    def forward(self, x, pad, memory=None, memory_pad=None):
        causal = None
        if memory is not None:
            causal = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        x = self.norms[0](
            x
            + self.drop(
                self.attn(x, x, x, key_padding_mask=pad, attn_mask=causal, need_weights=False)[0]
            )
        )
        if memory is not None:
            seen = self.cross(x, memory, memory, key_padding_mask=memory_pad, need_weights=False)[0]
            x = self.norms[1](x + self.drop(seen))
        return self.norms[-1](x + self.drop(self.ff(x)))


class Transformer(nn.Module):
    def __init__(
        self,
        src_vocab,
        tgt_vocab,
        d_model=512,
        n_layers=6,
        d_ff=2048,
        dropout=0.1,
        pad=0,
        max_len=100,
    ):
        super().__init__()
        self.pad, self.scale = pad, math.sqrt(d_model)
        self.src = nn.Embedding(src_vocab, d_model)
        self.tgt = nn.Embedding(tgt_vocab, d_model)
        self.pos = nn.Parameter(torch.randn(max_len, d_model))
        self.pos_t = nn.Parameter(torch.randn(max_len, d_model))
        self.encoder = nn.ModuleList(
            [Layer(d_model, d_ff, dropout, False) for _ in range(n_layers)]
        )
        self.decoder = nn.ModuleList([Layer(d_model, d_ff, dropout, True) for _ in range(n_layers)])
        self.out = nn.Linear(d_model, tgt_vocab)
        self.drop = nn.Dropout(dropout)

    def forward(self, src, tgt):
        src_pad, tgt_pad = src == self.pad, tgt == self.pad
        x = self.drop(self.src(src) * self.scale + self.pos[: src.size(1)])
        for layer in self.encoder:
            x = layer(x, src_pad)
        y = self.drop(self.tgt(tgt) * self.scale + self.pos_t[: tgt.size(1)])
        for layer in self.decoder:
            y = layer(y, tgt_pad, x, src_pad)
        return self.out(y)
