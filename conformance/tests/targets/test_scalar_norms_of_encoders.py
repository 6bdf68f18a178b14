"""Encoders whose norms train one number for all columns, and lengths that no code reads."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

from attentest.targets.adapt.reading import Unclear

CODE = """
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.alpha, self.bias = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def forward(self, x):
        mean, spread = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return self.alpha * (x - mean) / (spread + 1e-6) + self.bias


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.network = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))
        self.norm1, self.norm2 = Norm(), Norm()

    def forward(self, x, hidden=None):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, key_padding_mask=hidden)[0]
        return x + self.network(self.norm2(x))


class Reader(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, pad_id):
        super().__init__()
        self.embed, self.pad_id = nn.Embedding(vocab_size, d_model), pad_id
        self.layers = nn.ModuleList(Layer(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.norm, self.head = Norm(), nn.Linear(d_model, 2)

    def forward(self, ids, lengths=None):
        x, hidden = self.embed(ids), ids == self.pad_id
        for layer in self.layers:
            x = layer(x, hidden)
        return self.head(self.norm(x)[:, 0])
"""
CLAUSES = "encoder.formula", "encoder.padding-invariance"


def test_norms_with_one_number_are_judged_with_one_for_each_column(tmp_path):
    backend = adapted(tmp_path, "Reader", CODE)
    assert any("one number for all columns" in one for one in backend.assumed)
    assert not broken(backend, *CLAUSES)


MISTAKES = [
    ("(x - mean) / (spread + 1e-6)", "x / (spread + 1e-6)"),
    ("x = x + self.attention(y, y, y", "x = y + self.attention(y, y, y"),
    ("x + self.network(self.norm2(x))", "x + self.network(x)"),
    ("layer(x, hidden)", "layer(x, ~hidden)"),
]


@share(2, rest=1)
@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_mistakes_in_encoders_with_such_norms_are_not_passed(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "Reader", CODE, right, wrong, *CLAUSES)


def test_such_norms_are_asked_about_where_nothing_is_assumed(tmp_path):
    with pytest.raises(Unclear):
        adapted(tmp_path, "Reader", CODE, strict=True)


def test_unread_lengths_are_a_question_where_no_padding_is_hidden(tmp_path):
    with pytest.raises(Unclear, match="lengths"):
        adapted(tmp_path, "Reader", edited(CODE, ("layer(x, hidden)", "layer(x)")))
