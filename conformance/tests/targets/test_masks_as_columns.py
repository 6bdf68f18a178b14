"""Encoders that take a mask as a column for each sample, (B, L, 1), and make pairs of it."""

import pytest
from mistaken_code import adapted, broken, edited
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.heads = n_heads
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))
        self.merge = nn.Linear(d_model, d_model)
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.wide, self.narrow = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, attn_bias):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5 + attn_bias
        x = self.first(x + self.merge((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)))
        return self.second(x + self.narrow(torch.relu(self.wide(x))))


class Layers(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, n_layers):
        super().__init__()
        self.layers = nn.ModuleList(Layer(d_model, n_heads, d_ff) for _ in range(n_layers))

    def forward(self, x, attn_bias):
        for layer in self.layers:
            x = layer(x, attn_bias)
        return x


class BertModel(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, max_len):
        super().__init__()
        self.rows, self.places = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
        self.encoder = Layers(d_model, n_heads, d_ff, n_layers)

    def forward(self, src_ids, input_mask):
        x = self.rows(src_ids) + self.places(torch.arange(src_ids.shape[1]))
        pairs = input_mask @ input_mask.transpose(1, 2)
        return self.encoder(x, (1000 * (pairs - 1)).unsqueeze(1))
"""
CLAUSES = "encoder.formula", "encoder.padding-invariance"


def test_mask_that_is_a_column_breaks_no_clause(tmp_path):
    backend = adapted(tmp_path, "BertModel", CODE)
    assert broken(backend, *CLAUSES) == []


@share(2, rest=1)
@pytest.mark.parametrize(
    "edit",
    [
        ("self.first(x + ", "self.first("),
        ("scores.softmax(-1)", "scores.softmax(-2)"),
        ("/ q.shape[-1] ** 0.5 + attn_bias", "/ q.shape[-1] ** 0.5"),
    ],
)
def test_mistakes_behind_a_mask_that_is_a_column_are_judged_or_asked_about(tmp_path, edit):
    try:
        backend = adapted(tmp_path, "BertModel", edited(CODE, edit))
    except Unclear:
        return
    assert broken(backend, *CLAUSES)
