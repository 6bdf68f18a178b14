"""Everything in one class hierarchy, hard-coded masks, encode and decode with masks handed in."""

import math

import torch
from torch import nn


def pad_mask(ids, pad):
    """Return True at padding (B, 1, 1, L)."""
    return ids.eq(pad)[:, None, None, :]


class MultiHead(nn.Module):
    def __init__(self, hidden, heads, drop):
        super().__init__()
        self.heads = heads
        self.q_lin, self.k_lin = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.v_lin, self.out_lin = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.drop = nn.Dropout(drop)

    def forward(self, query, memory, blocked):
        batch, length, hidden = query.shape

        def split(x):
            return x.reshape(batch, -1, self.heads, hidden // self.heads).transpose(1, 2)

        q = split(self.q_lin(query)) / math.sqrt(hidden // self.heads)
        weights = q @ split(self.k_lin(memory)).transpose(2, 3)
        weights = self.drop(weights.masked_fill(blocked, -1e20).softmax(3))
        mixed = weights @ split(self.v_lin(memory))
        return self.out_lin(mixed.transpose(1, 2).reshape(batch, length, hidden))


class Feed(nn.Sequential):
    def __init__(self, hidden, inner, drop):
        super().__init__(
            nn.Linear(hidden, inner), nn.ReLU(), nn.Dropout(drop), nn.Linear(inner, hidden)
        )


class AddNorm(nn.Module):
    def __init__(self, hidden, drop):
        super().__init__()
        self.ln, self.drop = nn.LayerNorm(hidden), nn.Dropout(drop)

    def forward(self, x, update):
        return self.ln(x + self.drop(update))


class EncBlock(nn.Module):
    def __init__(self, hidden, heads, inner, drop):
        super().__init__()
        self.attention, self.add_norm1 = MultiHead(hidden, heads, drop), AddNorm(hidden, drop)
        self.feed, self.add_norm2 = Feed(hidden, inner, drop), AddNorm(hidden, drop)

    def forward(self, x, blocked):
        x = self.add_norm1(x, self.attention(x, x, blocked))
        return self.add_norm2(x, self.feed(x))


class DecBlock(nn.Module):
    def __init__(self, hidden, heads, inner, drop):
        super().__init__()
        self.attention1, self.add_norm1 = MultiHead(hidden, heads, drop), AddNorm(hidden, drop)
        self.attention2, self.add_norm2 = MultiHead(hidden, heads, drop), AddNorm(hidden, drop)
        self.feed, self.add_norm3 = Feed(hidden, inner, drop), AddNorm(hidden, drop)

    def forward(self, y, memory, blocked, memory_blocked):
        y = self.add_norm1(y, self.attention1(y, y, blocked))
        y = self.add_norm2(y, self.attention2(y, memory, memory_blocked))
        return self.add_norm3(y, self.feed(y))


class TransformerMT(nn.Module):
    def __init__(
        self,
        src_vocab,
        tgt_vocab,
        hidden_size=128,
        n_heads=4,
        inner_size=256,
        n_layers=2,
        max_length=100,
        dropout=0.1,
        src_pad=0,
        tgt_pad=0,
    ):
        super().__init__()
        self.src_pad, self.tgt_pad, self.hidden_size = src_pad, tgt_pad, hidden_size
        self.src_emb = nn.Embedding(src_vocab, hidden_size)
        self.tgt_emb = nn.Embedding(tgt_vocab, hidden_size)
        self.src_pos = nn.Embedding(max_length, hidden_size)
        self.tgt_pos = nn.Embedding(max_length, hidden_size)
        rest = hidden_size, n_heads, inner_size, dropout
        self.enc = nn.ModuleList([EncBlock(*rest) for _ in range(n_layers)])
        self.dec = nn.ModuleList([DecBlock(*rest) for _ in range(n_layers)])
        self.proj = nn.Linear(hidden_size, tgt_vocab)
        self.drop = nn.Dropout(dropout)

    def embed(self, ids, tokens, positions):
        where = torch.arange(ids.size(1), device=ids.device).expand_as(ids)
        return self.drop(tokens(ids) * math.sqrt(self.hidden_size) + positions(where))

    def encode(self, src, src_mask):
        x = self.embed(src, self.src_emb, self.src_pos)
        for block in self.enc:
            x = block(x, src_mask)
        return x

    def decode(self, tgt, memory, src_mask, tgt_mask):
        y = self.embed(tgt, self.tgt_emb, self.tgt_pos)
        for block in self.dec:
            y = block(y, memory, tgt_mask, src_mask)
        return self.proj(y)

    def forward(self, src, tgt):
        src_mask = pad_mask(src, self.src_pad)
        size = tgt.size(1)
        later = torch.ones(size, size, device=tgt.device).triu(1).bool()
        tgt_mask = pad_mask(tgt, self.tgt_pad) | later
        return self.decode(tgt, self.encode(src, src_mask), src_mask, tgt_mask)
