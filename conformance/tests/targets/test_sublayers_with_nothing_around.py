"""Layers of constants one sublayer of which has neither a path around it nor a norm."""

import pytest
from mistaken_code import adapted, broken, edited
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import math

import torch
from torch import nn

d_model = 96
d_ff = 384
n_heads = 6
d_k = 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(d_model, d_k * n_heads), nn.Linear(d_model, d_k * n_heads)
        self.v, self.out = nn.Linear(d_model, d_k * n_heads), nn.Linear(d_k * n_heads, d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, hidden):
        rows = x.size(0)
        split = [one(x).view(rows, -1, n_heads, d_k) for one in (self.q, self.k, self.v)]
        q, k, v = (one.transpose(1, 2) for one in split)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d_k)
        weights = scores.masked_fill(hidden.unsqueeze(1), -1e9).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).reshape(rows, -1, n_heads * d_k)
        return self.norm(self.out(mixed) + x)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.narrow(nn.functional.gelu(self.wide(x)))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.network = Attention(), Network()

    def forward(self, x, hidden):
        return self.network(self.attention(x, hidden))
"""
CLAUSE = "encoder.layer-formula"
REPAIRED = edited(
    CODE,
    (
        "        return self.network(self.attention(x, hidden))",
        "        x = self.attention(x, hidden)\n        return self.last(x + self.network(x))",
    ),
)
NORM = (
    "        self.attention, self.network = Attention(), Network()",
    "        self.attention, self.network = Attention(), Network()\n"
    "        self.last = nn.LayerNorm(d_model)",
)


def test_network_with_nothing_around_it_is_judged_in_layers_of_constants(tmp_path):
    assert broken(adapted(tmp_path, "EncoderLayer", CODE), CLAUSE)


def test_layer_of_constants_with_both_sublayers_wrapped_conforms(tmp_path):
    backend = adapted(tmp_path, "EncoderLayer", edited(REPAIRED, NORM))
    assert broken(backend, CLAUSE) == []


@share(2, rest=1)
@pytest.mark.parametrize(
    "edit",
    [
        ("return self.network(", "return 2 * self.network("),
        ("self.attention(x, hidden))", "self.attention(x, hidden)).tanh()"),
    ],
)
def test_layer_of_constants_of_another_design_is_asked_about(tmp_path, edit):
    with pytest.raises(Unclear):
        adapted(tmp_path, "EncoderLayer", edited(CODE, edit))
