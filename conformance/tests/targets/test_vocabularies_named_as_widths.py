"""Encoders whose vocabulary has the name of a width of inputs, as their table of tokens shows."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.wide, self.narrow = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = self.first(x + self.attention(x, x, x)[0])
        return self.second(x + self.narrow(torch.relu(self.wide(x))))


class Stack(nn.Module):
    def __init__(self, input_size, d_model, n_heads, d_ff, n_layers, max_len=64):
        super().__init__()
        self.rows, self.places = nn.Embedding(input_size, d_model), nn.Embedding(max_len, d_model)
        self.layers = nn.ModuleList(Layer(d_model, n_heads, d_ff) for _ in range(n_layers))

    def forward(self, x):
        x = self.rows(x) + self.places(torch.arange(x.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return x


class Transformer(nn.Module):
    def __init__(self, input_size, output_size, d_model, n_heads, d_ff, n_layers):
        super().__init__()
        self.encoder = Stack(input_size, d_model, n_heads, d_ff, n_layers)
        self.head = nn.Linear(d_model, output_size)

    def forward(self, x):
        return self.head(self.encoder(x)[:, 0])
"""
CLAUSES = "encoder.formula", "embedding.scale", "positional_encoding.formula"
FEATURES = (
    ("nn.Embedding(input_size, d_model)", "nn.Linear(input_size, d_model)"),
    ("self.rows(x) + self.places(torch.arange(x.shape[1]))", "self.rows(x)"),
)


def test_width_of_inputs_that_is_the_rows_of_a_table_is_the_vocabulary(tmp_path):
    backend = adapted(tmp_path, "Transformer", CODE)
    assert any("input_size is the size of the vocabulary" in one for one in backend.assumed)
    assert broken(backend, *CLAUSES) == []


def test_width_of_inputs_that_a_matrix_maps_stays_one(tmp_path):
    with pytest.raises(Unclear, match="could not be called as encoder"):
        adapted(tmp_path, "Transformer", edited(CODE, *FEATURES))


@pytest.mark.parametrize(
    "edit",
    [
        ("self.first(x + ", "self.first("),
        ("self.places(torch.arange(x.shape[1]))", "self.places(torch.arange(x.shape[1]).flip(0))"),
        ("self.wide(x))))", "self.wide(x)))) + x"),
    ],
)
def test_mistakes_of_a_vocabulary_named_as_a_width_are_not_excused(tmp_path, edit):
    assert asked_or_broken(tmp_path, "Transformer", CODE, *edit, *CLAUSES)
