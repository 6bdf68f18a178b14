"""Layers that begin with a norm, behind which their residual path begins."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

from attentest.targets.adapt.reading import Unclear

CODE = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.network = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm1(x)
        x = x + self.attention(x, x, x)[0]
        x = self.norm2(x)
        return x + self.network(x)


class Reader(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(Layer(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, 2)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])
"""
WITHOUT = (
    ("        self.norm = nn.LayerNorm(d_model)\n", ""),
    ("self.norm(x)[:, 0]", "x[:, 0]"),
)
SAID = "is the last one of the layer before it"


@pytest.mark.parametrize("edits", [(), WITHOUT], ids=["a norm behind", "none behind"])
def test_norms_of_the_layer_before_are_those_behind_sublayers(tmp_path, edits):
    backend = adapted(tmp_path, "Reader", edited(CODE, *edits))
    assert any(SAID in one for one in backend.assumed)
    assert not broken(backend, "encoder.formula", "encoder.norm-placement")
    assert any("put behind the last one" in one for one in backend.assumed) == bool(edits)


MISTAKES = [
    ("x = x + self.attention(x, x, x)[0]", "x = self.attention(x, x, x)[0]"),
    ("return x + self.network(x)", "return self.network(x)"),
    ("        x = self.norm2(x)\n", "        x = self.norm1(x)\n"),
    ("        x = self.norm2(x)\n        return x +", "        return x +"),
    (
        "x = self.norm2(x)\n        return x + self.network(x)",
        "return x + self.network(self.norm2(x))",
    ),
    ("nn.ReLU()", "nn.Identity()"),
]
"""The right code and a mistake; the last but one has the path of one sublayer before its norm."""


@share(2, rest=1)
@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_mistakes_in_layers_with_such_norms_are_not_passed(tmp_path, right, wrong):
    clauses = "encoder.formula", "encoder.layers-own-parameters"
    assert asked_or_broken(tmp_path, "Reader", CODE, right, wrong, *clauses)


def test_norms_before_sublayers_are_read_as_they_are(tmp_path):
    usual = edited(
        CODE,
        ("        x = self.norm1(x)\n", "        y = self.norm1(x)\n"),
        ("self.attention(x, x, x)", "self.attention(y, y, y)"),
        ("        x = self.norm2(x)\n", ""),
        ("self.network(x)", "self.network(self.norm2(x))"),
    )
    backend = adapted(tmp_path, "Reader", usual)
    assert not any(SAID in one for one in backend.assumed)
    assert not broken(backend, "encoder.formula")


@pytest.mark.proof
def test_norms_of_the_layer_before_are_asked_about_where_nothing_is_assumed(tmp_path):
    with pytest.raises(Unclear):
        adapted(tmp_path, "Reader", CODE, strict=True)


@share(2, rest=1)
@pytest.mark.parametrize(
    "edits",
    [
        [("class Layer(nn.Module):", "class Layer(nn.Module):  # pre-norm")],
        [("self.norm1", "self.attention_norm")],
    ],
    ids=["words", "the name of a norm"],
)
def test_norms_that_are_meant_before_sublayers_are_asked_about(tmp_path, edits):
    with pytest.raises(Unclear):
        adapted(tmp_path, "Reader", edited(CODE, *edits))
