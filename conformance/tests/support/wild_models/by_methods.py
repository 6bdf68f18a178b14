"""A model without a call: a function builds it, and encode, decode and project are called."""

import math

import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        assert width % count == 0, f"{width} is no multiple of {count}"
        self.count = count
        self.into = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.back = nn.Linear(width, width)

    def forward(self, query, key, value, mask):
        q, k, v = (
            net(x).unflatten(-1, (self.count, -1)).transpose(1, 2)
            for net, x in zip(self.into, (query, key, value), strict=True)
        )
        scores = q @ k.mT / math.sqrt(q.size(-1))
        shares = scores.masked_fill(mask == 0, -1e9).softmax(-1)
        return self.back((shares @ v).transpose(1, 2).flatten(2))


class Widen(nn.Module):
    def __init__(self, width, inside=48):
        super().__init__()
        self.up, self.down = nn.Linear(width, inside), nn.Linear(inside, width)

    def forward(self, x):
        return self.down(self.up(x).relu())


class Step(nn.Module):
    def __init__(self, width, count, crossed):
        super().__init__()
        self.self_attention = Attend(width, count)
        self.cross_attention = Attend(width, count) if crossed else None
        self.feed_forward = Widen(width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 + crossed))

    def forward(self, x, mask, memory=None, memory_mask=None):
        x = self.norms[0](x + self.self_attention(x, x, x, mask))
        if self.cross_attention is not None:
            x = self.norms[1](x + self.cross_attention(x, memory, memory, memory_mask))
        return self.norms[-1](x + self.feed_forward(x))


class Places(nn.Module):
    def __init__(self, width, longest):
        super().__init__()
        steps = torch.arange(longest, dtype=torch.float64)[:, None]
        rates = 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
        table = torch.zeros(longest, width, dtype=torch.float64)
        table[:, 0::2] = (steps / rates).sin()
        table[:, 1::2] = (steps / rates[: width // 2]).cos()
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        return x + self.table[: x.size(1)].to(x.dtype)


class Transformer(nn.Module):
    def __init__(self, encoder, decoder, src_embed, tgt_embed, place, projection):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.src_embed, self.tgt_embed = src_embed, tgt_embed
        self.place, self.projection = place, projection

    def encode(self, src, src_mask):
        x = self.place(self.src_embed(src) * math.sqrt(self.src_embed.embedding_dim))
        for layer in self.encoder:
            x = layer(x, src_mask)
        return x

    def decode(self, encoder_output, src_mask, tgt, tgt_mask):
        x = self.place(self.tgt_embed(tgt) * math.sqrt(self.tgt_embed.embedding_dim))
        for layer in self.decoder:
            x = layer(x, tgt_mask, encoder_output, src_mask)
        return x

    def project(self, x):
        return self.projection(x).log_softmax(-1)


def build_transformer(src_vocab_len, tgt_vocab_len, src_seq_len, d_model=64, num_blocks=3, h=4):
    return Transformer(
        nn.ModuleList(Step(d_model, h, False) for _ in range(num_blocks)),
        nn.ModuleList(Step(d_model, h, True) for _ in range(num_blocks)),
        nn.Embedding(src_vocab_len, d_model),
        nn.Embedding(tgt_vocab_len, d_model),
        Places(d_model, src_seq_len),
        nn.Linear(d_model, tgt_vocab_len),
    )
