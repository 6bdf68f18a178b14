"""An encoder and a decoder, made of the library's layers' parts."""

import math

import torch.nn.functional as F  # noqa: N812
from torch import nn


class MHA(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"d_model {d_model} is not a multiple of n_heads {n_heads}")
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.wq = nn.Linear(d_model, d_model, bias=False)
        self.wk = nn.Linear(d_model, d_model, bias=False)
        self.wv = nn.Linear(d_model, d_model, bias=False)
        self.wo = nn.Linear(d_model, d_model, bias=False)

    def forward(self, q, k, v, mask=None):
        bsz, tgt, _ = q.shape
        q = self.wq(q).view(bsz, tgt, self.n_heads, self.d_head).transpose(1, 2)
        k = self.wk(k).view(bsz, -1, self.n_heads, self.d_head).transpose(1, 2)
        v = self.wv(v).view(bsz, -1, self.n_heads, self.d_head).transpose(1, 2)
        att = (q @ k.transpose(-1, -2)) * (1.0 / math.sqrt(self.d_head))
        if mask is not None:
            att = att.masked_fill(mask.logical_not(), float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.wo(y.transpose(1, 2).contiguous().view(bsz, tgt, -1))


class FFN(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.lin2(F.relu(self.lin1(x)))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attn, self.ffn = MHA(d_model, n_heads), FFN(d_model, d_ff)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = self.norm1(x + self.attn(x, x, x, mask))
        return self.norm2(x + self.ffn(x))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attn, self.cross = MHA(d_model, n_heads), MHA(d_model, n_heads)
        self.ffn = FFN(d_model, d_ff)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, y, memory, src_mask=None, tgt_mask=None):
        y = self.norm1(y + self.attn(y, y, y, tgt_mask))
        y = self.norm2(y + self.cross(y, memory, memory, src_mask))
        return self.norm3(y + self.ffn(y))


class Encoder(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(
            [EncoderLayer(d_model, n_heads, d_ff) for _ in range(num_layers)]
        )

    def forward(self, src, src_mask=None):
        out = src
        for layer in self.layers:
            out = layer(out, src_mask)
        return out


class Decoder(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(
            [DecoderLayer(d_model, n_heads, d_ff) for _ in range(num_layers)]
        )

    def forward(self, tgt, memory, src_mask=None, tgt_mask=None):
        state = tgt
        for block in self.layers:
            state = block(state, memory, src_mask, tgt_mask)
        return state
