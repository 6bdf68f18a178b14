"""Layers that call one norm behind both sublayers, and that are called by their `forward`."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

CODE = """
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.network = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm(x + self.attention(x, x, x)[0])
        return self.norm(x + self.network(x))


class Reader(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(Layer(d_model, num_heads, d_ff) for _ in range(num_layers))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer.forward(x)
        return x
"""


@pytest.mark.parametrize("call", ["layer.forward(x)", "layer(x)"])
def test_one_norm_for_both_sublayers_is_judged_with_one_for_each(tmp_path, call):
    backend = adapted(tmp_path, "Reader", edited(CODE, ("layer.forward(x)", call)))
    assert any("one norm for all sublayers" in one for one in backend.assumed)
    assert not broken(backend, "encoder.formula")


@pytest.mark.proof
def test_mistakes_in_layers_with_one_norm_are_not_passed(tmp_path):
    for right, wrong in (
        ("self.norm(x + self.network(x))", "self.norm(self.network(x))"),
        ("self.norm(x + self.network(x))", "self.norm(self.norm(x + self.network(x)))"),
    ):
        assert asked_or_broken(tmp_path, "Reader", CODE, right, wrong, "encoder.formula")
