"""Functions that make an encoder of ids, and classes that take its parts as objects."""

import pytest
from mistaken_code import adapted, broken, edited
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x, hidden):
        x = self.first(x + self.attention(x, x, x, key_padding_mask=hidden)[0])
        return self.second(x + self.narrow(torch.relu(self.wide(x))))


class Stack(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x, hidden):
        for layer in self.layers:
            x = layer(x, hidden)
        return x


class Reviews(nn.Module):
    def __init__(self, stack, rows, places, head):
        super().__init__()
        self.stack, self.rows, self.places, self.head = stack, rows, places, head

    def forward(self, inputs):
        ids, unused = inputs
        x = self.rows(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.stack(x, ids == 0)[:, 0])


def build_model(vocab_size, d_model, n_heads, n_layers, d_ff, max_len):
    layers = nn.ModuleList(Layer(d_model, n_heads, d_ff) for _ in range(n_layers))
    rows, places = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
    return Reviews(Stack(layers), rows, places, nn.Linear(d_model, 2))
"""
CLAUSES = "encoder.formula", "encoder.padding-invariance"


@pytest.mark.parametrize("name", ["build_model", "Reviews"])
def test_encoder_that_a_function_makes_is_judged(tmp_path, name):
    backend = adapted(tmp_path, name, CODE)
    assert backend.summary.startswith("build_model(")
    assert broken(backend, *CLAUSES) == []
    assert "build_model(" in backend.written()


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.first(x + ", "self.first("),
        ("ids == 0", "ids != 0"),
        ("torch.relu(self.wide(x))", "self.wide(x)"),
        ("x = layer(x, hidden)", "x = self.layers[0](x, hidden)"),
    ],
)
def test_mistake_in_an_encoder_that_a_function_makes_is_found(tmp_path, right, wrong):
    try:
        backend = adapted(tmp_path, "build_model", edited(CODE, (right, wrong)))
    except Unclear:
        return
    assert broken(backend, *CLAUSES)


def test_class_that_several_functions_make_is_not_read_by_one(tmp_path):
    second = CODE[CODE.index("def build_model") :].replace("build_model", "build_other_model")
    with pytest.raises(Unclear):
        adapted(tmp_path, "Reviews", f"{CODE}\n\n{second}")
