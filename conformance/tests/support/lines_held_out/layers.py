"""Layers: sequence-first with the library's attention, and sublayers handed to a wrapper."""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class EncoderLayer(nn.Module):
    """src: (length, batch, d_model); src_key_padding_mask: True at padding."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, nhead, dropout=dropout)
        self.linear1 = nn.Linear(d_model, dim_feedforward)
        self.linear2 = nn.Linear(dim_feedforward, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout, self.dropout1 = nn.Dropout(dropout), nn.Dropout(dropout)
        self.dropout2 = nn.Dropout(dropout)

    def forward(self, src, src_key_padding_mask=None):
        src2 = self.self_attn(src, src, src, key_padding_mask=src_key_padding_mask)[0]
        src = src + self.dropout1(src2)
        src = self.norm1(src)
        src2 = self.linear2(self.dropout(F.relu(self.linear1(src))))
        src = src + self.dropout2(src2)
        return self.norm2(src)


class Attend(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        if size % heads:
            raise ValueError(f"size {size} is no multiple of heads {heads}")
        self.heads = heads
        self.maps = nn.ModuleList(nn.Linear(size, size) for _ in range(4))

    def forward(self, query, key, value, mask):
        batch, _, size = query.shape
        per_head = size // self.heads
        q, k, v = (
            linear(t).reshape(batch, -1, self.heads, per_head).swapaxes(1, 2)
            for linear, t in zip(self.maps, (query, key, value), strict=False)
        )
        points = q.matmul(k.swapaxes(-2, -1)).mul(1 / math.sqrt(per_head))
        if mask is not None:
            points = points.masked_fill(mask.eq(False), -1e9)
        picked = points.softmax(-1).matmul(v)
        picked = picked.swapaxes(1, 2).reshape(batch, -1, size)
        return self.maps[3](picked)


class AddNorm(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(size), nn.Dropout(dropout)

    def forward(self, x, run):
        return self.norm(x + self.dropout(run(x)))


class DecoderLayer(nn.Module):
    """Three sublayers, each given to a wrapper as a function."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.1):
        super().__init__()
        self.self_attn, self.src_attn = Attend(d_model, num_heads), Attend(d_model, num_heads)
        self.w1, self.w2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.sublayer = nn.ModuleList(AddNorm(d_model, dropout) for _ in range(3))

    def feed(self, x):
        return self.w2(torch.relu(self.w1(x)))

    def forward(self, x, memory, src_mask=None, tgt_mask=None):
        x = self.sublayer[0](x, lambda y: self.self_attn(y, y, y, tgt_mask))
        x = self.sublayer[1](x, lambda y: self.src_attn(y, memory, memory, src_mask))
        return self.sublayer[2](x, self.feed)


class DecoderBlock(nn.Module):
    """Pre-norm in one forward: F.linear-like maps by name, fused attention."""

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} is no multiple of num_heads {num_heads}")
        self.num_heads = num_heads
        self.sa_q, self.sa_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.sa_v, self.sa_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.ca_q, self.ca_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.ca_v, self.ca_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.ff_in, self.ff_out = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.sa_norm, self.ca_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.ff_norm = nn.LayerNorm(d_model)

    def cut(self, t):
        return t.view(t.size(0), t.size(1), self.num_heads, -1).transpose(1, 2)

    def paste(self, t):
        return t.transpose(1, 2).reshape(t.size(0), t.size(2), -1)

    def forward(self, x, memory, src_mask=None, tgt_mask=None):
        u = self.sa_norm(x)
        q, k, v = self.cut(self.sa_q(u)), self.cut(self.sa_k(u)), self.cut(self.sa_v(u))
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=tgt_mask)
        x = x + self.sa_o(self.paste(a))
        u = self.ca_norm(x)
        q, k, v = self.cut(self.ca_q(u)), self.cut(self.ca_k(memory)), self.cut(self.ca_v(memory))
        c = F.scaled_dot_product_attention(q, k, v, attn_mask=src_mask)
        x = x + self.ca_o(self.paste(c))
        u = self.ff_norm(x)
        return x + self.ff_out(torch.relu(self.ff_in(u)))
