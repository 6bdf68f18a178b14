"""An encoder whose layers are given value, key and query, with learned positions."""

import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, embed_size, heads):
        super().__init__()
        self.heads, self.head_dim = heads, embed_size // heads
        self.values, self.keys = (
            nn.Linear(embed_size, embed_size),
            nn.Linear(embed_size, embed_size),
        )
        self.queries = nn.Linear(embed_size, embed_size)
        self.fc_out = nn.Linear(embed_size, embed_size)

    def forward(self, value, key, query, mask):
        batch = query.shape[0]
        values = self.values(value).reshape(batch, -1, self.heads, self.head_dim)
        keys = self.keys(key).reshape(batch, -1, self.heads, self.head_dim)
        queries = self.queries(query).reshape(batch, -1, self.heads, self.head_dim)
        energy = torch.einsum("nqhd,nkhd->nhqk", queries, keys)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        weights = torch.softmax(energy / self.head_dim**0.5, dim=3)
        out = torch.einsum("nhql,nlhd->nqhd", weights, values)
        return self.fc_out(out.reshape(batch, -1, self.heads * self.head_dim))


class TransformerBlock(nn.Module):
    def __init__(self, embed_size, heads, dropout, forward_expansion):
        super().__init__()
        self.attention = SelfAttention(embed_size, heads)
        self.norm1, self.norm2 = nn.LayerNorm(embed_size), nn.LayerNorm(embed_size)
        self.feed_forward = nn.Sequential(
            nn.Linear(embed_size, forward_expansion * embed_size),
            nn.ReLU(),
            nn.Linear(forward_expansion * embed_size, embed_size),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, value, key, query, mask):
        x = self.dropout(self.norm1(self.attention(value, key, query, mask) + query))
        return self.dropout(self.norm2(self.feed_forward(x) + x))


class Encoder(nn.Module):
    def __init__(
        self, src_vocab_size, embed_size, num_layers, heads, forward_expansion, dropout, max_length
    ):
        super().__init__()
        self.word_embedding = nn.Embedding(src_vocab_size, embed_size)
        self.position_embedding = nn.Embedding(max_length, embed_size)
        self.layers = nn.ModuleList(
            TransformerBlock(embed_size, heads, dropout, forward_expansion)
            for _ in range(num_layers)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask):
        words = self.word_embedding(x)
        positions = torch.arange(x.shape[1], device=x.device).expand(*x.shape)
        out = self.dropout(words + self.position_embedding(positions))
        for layer in self.layers:
            out = layer(out, out, out, mask)
        return out
