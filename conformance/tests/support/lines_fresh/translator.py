"""A small model of encoder and decoder, with layers of its own and torch's attention."""

import math

import torch
from torch import nn


def sinusoids(length, width, dtype):
    position = torch.arange(length, dtype=dtype)[:, None]
    index = torch.arange(0, width, 2, dtype=dtype)
    angle = position * torch.exp(-math.log(10000.0) * index / width)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


class Network(nn.Sequential):
    def __init__(self, width, inner):
        super().__init__(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(width, heads, bias=False, batch_first=True)
        self.network = Network(width, inner)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, hidden):
        x = self.norm1(x + self.self_attn(x, x, x, key_padding_mask=hidden)[0])
        return self.norm2(x + self.network(x))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(width, heads, bias=False, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(width, heads, bias=False, batch_first=True)
        self.network = Network(width, inner)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.norm3 = nn.LayerNorm(width)

    def forward(self, x, memory, future, hidden, memory_hidden):
        attended = self.self_attn(x, x, x, attn_mask=future, key_padding_mask=hidden)[0]
        x = self.norm1(x + attended)
        attended = self.cross_attn(x, memory, memory, key_padding_mask=memory_hidden)[0]
        x = self.norm2(x + attended)
        return self.norm3(x + self.network(x))


class Transformer(nn.Module):
    """Token ids in, log-probabilities out; the id `pad` is padding."""

    def __init__(self, vocab_size, d_model, nhead, num_layers, dim_feedforward, pad=0):
        super().__init__()
        self.pad, self.width = pad, d_model
        self.embedding = nn.Embedding(vocab_size, d_model)
        sizes = d_model, nhead, dim_feedforward
        self.encoder = nn.ModuleList(EncoderLayer(*sizes) for _ in range(num_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*sizes) for _ in range(num_layers))
        self.output = nn.Linear(d_model, vocab_size)

    def embed(self, tokens):
        x = self.embedding(tokens) * math.sqrt(self.width)
        return x + sinusoids(tokens.shape[1], self.width, x.dtype)

    def forward(self, src, tgt):
        src_hidden, tgt_hidden = src == self.pad, tgt == self.pad
        future = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).triu(1)
        memory = self.embed(src)
        for layer in self.encoder:
            memory = layer(memory, src_hidden)
        x = self.embed(tgt)
        for layer in self.decoder:
            x = layer(x, memory, future, tgt_hidden, src_hidden)
        return self.output(x).log_softmax(dim=-1)
