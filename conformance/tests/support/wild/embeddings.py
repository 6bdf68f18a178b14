"""Embeddings with a row for padding that is not trained, as people write them."""

import math

import torch
from torch import nn

FIRST_TWO = torch.tensor([0, 1])


class FixedPadding(nn.Module):
    """The pad id is 0, whatever the configuration says."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model, padding_idx=0)
        self.scale = math.sqrt(d_model)

    def forward(self, tokens):
        return self.table(tokens) * self.scale


class GivenPadding(nn.Module):
    def __init__(self, vocab_size, d_model, padding_idx):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model, padding_idx=padding_idx)

    def forward(self, tokens):
        return self.table(tokens)


class NoPadding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)

    def forward(self, tokens):
        return self.table(tokens)


class TwoRowsFrozen(NoPadding):
    """A mistake: the row after that of the pad id is not trained either."""

    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.table.weight.register_hook(lambda pulled: pulled.index_fill(0, FIRST_TWO, 0.0))
