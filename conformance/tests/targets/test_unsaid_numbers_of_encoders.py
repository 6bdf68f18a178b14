"""Arguments of encoders that no name says, and that no layer holds: built with a small number."""

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt.reading import Unclear

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        weights = ((q @ k.transpose(-2, -1)) * self.scale).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads, inner, given):
        super().__init__()
        self.attention, self.norm1 = Attention(width, heads), nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.outer(self.inner(x).relu()))


class Reader(nn.Module):
    def __init__(self, args):
        super().__init__()
        vocabulary, width = args["vocab_size"], args["d_model"]
        quux = args["num_quux"]
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(
            Layer(width, args["num_heads"], args["d_ff"], quux) for _ in range(args["num_layers"])
        )
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0])
"""
ARGUMENT = [
    (
        "def __init__(self, args):",
        "def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, quux):",
    ),
    ('args["vocab_size"], args["d_model"]', "vocab_size, d_model"),
    ('        quux = args["num_quux"]\n', "        self.quux = quux\n"),
    ('args["num_heads"], args["d_ff"], quux', "num_heads, d_ff, 0"),
    ('args["num_layers"]', "num_layers"),
]
HELD = ("self.inner, self.outer =", "self.given = given\n        self.inner, self.outer =")


def edited(*edits):
    code = CODE
    for old, new in edits:
        assert old in code
        code = code.replace(old, new)
    return code


@pytest.mark.parametrize("edits", [[], ARGUMENT], ids=["a field", "an argument"])
def test_number_that_no_layer_holds_is_assumed(tmp_path, edits):
    backend = adapted(tmp_path, "Reader", edited(*edits))
    assert any("quux is a number that no layer has" in one for one in backend.assumed)
    assert not broken(backend, "encoder.formula")


@share(2, rest=1)
@pytest.mark.parametrize("edits", [[], ARGUMENT], ids=["a field", "an argument"])
def test_mistakes_beside_such_a_number_are_judged(tmp_path, edits):
    backend = adapted(tmp_path, "Reader", edited(*edits, (".softmax(-1)", ".softmax(1)")))
    assert broken(backend, "encoder.formula")


@share(2, rest=1)
@pytest.mark.parametrize(
    "used", ["self.outer(self.inner(x).relu())", "self.outer(self.inner(x).relu()) / self.given"]
)
def test_number_that_a_layer_holds_is_asked_about(tmp_path, used):
    edits = HELD, ("self.outer(self.inner(x).relu())", used)
    with pytest.raises(Unclear, match="nothing says what num_quux is"):
        adapted(tmp_path, "Reader", edited(*edits))
