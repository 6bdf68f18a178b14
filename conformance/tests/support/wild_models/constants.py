"""A model whose sizes are constants of the file, as in a tutorial."""

import numpy as np
import torch
from torch import nn

d_model = 512
d_ff = 2048
d_k = d_v = 64
n_layers, n_heads = 6, 8
src_vocab_size = 1000
tgt_vocab_size = 1200
max_len = 100
dropout = 0.1
batch_size = 32


class PositionTable(nn.Module):
    def __init__(self):
        super().__init__()
        angle = torch.arange(max_len)[:, None] / 10000.0 ** (torch.arange(0, d_model, 2) / d_model)
        table = torch.zeros(max_len, d_model, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.size(1)].to(x.dtype)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_Q = nn.Linear(d_model, d_k * n_heads, bias=False)
        self.W_K = nn.Linear(d_model, d_k * n_heads, bias=False)
        self.W_V = nn.Linear(d_model, d_v * n_heads, bias=False)
        self.fc = nn.Linear(n_heads * d_v, d_model, bias=False)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, q, k, v, hidden):
        n, before = q.size(0), q
        q = self.W_Q(q).view(n, -1, n_heads, d_k).transpose(1, 2)
        k = self.W_K(k).view(n, -1, n_heads, d_k).transpose(1, 2)
        v = self.W_V(v).view(n, -1, n_heads, d_v).transpose(1, 2)
        scores = q @ k.transpose(-1, -2) / np.sqrt(d_k)
        scores = scores.masked_fill(hidden.unsqueeze(1), -1e9)
        seen = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, -1, n_heads * d_v)
        return self.norm(before + self.fc(seen))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(
            nn.Linear(d_model, d_ff, bias=False), nn.ReLU(), nn.Linear(d_ff, d_model, bias=False)
        )
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x):
        return self.norm(x + self.fc(x))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.feed_forward = Attention(), FeedForward()

    def forward(self, x, hidden):
        return self.feed_forward(self.attention(x, x, x, hidden))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.cross, self.feed_forward = Attention(), Attention(), FeedForward()

    def forward(self, y, memory, hidden, memory_hidden):
        y = self.own(y, y, y, hidden)
        return self.feed_forward(self.cross(y, memory, memory, memory_hidden))


def pads(ids, length):
    return (ids == 0)[:, None, :].expand(-1, length, -1)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.src_emb = nn.Embedding(src_vocab_size, d_model)
        self.tgt_emb = nn.Embedding(tgt_vocab_size, d_model)
        self.pos, self.drop = PositionTable(), nn.Dropout(dropout)
        self.encoder = nn.ModuleList([EncoderLayer() for _ in range(n_layers)])
        self.decoder = nn.ModuleList([DecoderLayer() for _ in range(n_layers)])
        self.projection = nn.Linear(d_model, tgt_vocab_size, bias=False)

    def forward(self, enc_inputs, dec_inputs):
        x = self.drop(self.pos(self.src_emb(enc_inputs)))
        for layer in self.encoder:
            x = layer(x, pads(enc_inputs, enc_inputs.size(1)))
        y = self.drop(self.pos(self.tgt_emb(dec_inputs)))
        length = dec_inputs.size(1)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        for layer in self.decoder:
            y = layer(y, x, later | pads(dec_inputs, length), pads(enc_inputs, length))
        return self.projection(y)
