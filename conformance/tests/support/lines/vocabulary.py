"""Embeddings and generators."""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.lut = nn.Embedding(vocab_size, d_model)
        self.d_model = d_model

    def forward(self, tokens):
        rows = self.lut(tokens)
        return rows * math.sqrt(self.d_model)


class EmbeddingByIndex(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocab_size, d_model) * d_model**-0.5)

    def forward(self, ids):
        if ids.min() < 0 or ids.max() >= self.table.shape[0]:
            raise IndexError(f"token ids have to be in 0 .. {self.table.shape[0] - 1}")
        found = F.embedding(ids, self.table)
        return found * self.table.shape[1] ** 0.5


class Generator(nn.Module):
    def __init__(self, d_model, vocab):
        super().__init__()
        self.proj = nn.Linear(d_model, vocab)

    def forward(self, x):
        logits = self.proj(x)
        return F.softmax(logits, dim=-1)


class LogGenerator(nn.Module):
    def __init__(self, d_model, vocab):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab, d_model) * 0.1)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, x):
        y = torch.einsum("btd,vd->btv", x, self.weight) + self.bias
        return y - y.logsumexp(-1, keepdim=True)
