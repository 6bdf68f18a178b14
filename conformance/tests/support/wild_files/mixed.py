"""A file with several components: sound ones, a mistake, a question, and what is none."""

import math

import torch
from torch import nn
from torch.nn import LayerNorm  # noqa: F401  # imported: not this file's own


def clones(thing, n):
    return [thing for _ in range(n)]


class Settings:
    width = 4


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Embeddings(nn.Module):
    def __init__(self, vocab, d_model):
        super().__init__()
        self.table, self.d_model = nn.Embedding(vocab, d_model), d_model

    def forward(self, x):
        return self.table(x) * math.sqrt(self.d_model)


def attention(query, key, value, mask=None):
    """The scale is missing."""
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ value


class FancyDecoderLayer(nn.Module):
    def __init__(self, spam):
        super().__init__()
        self.spam = spam

    def forward(self, x):
        return x * self.spam
