"""Encoders whose greatest length is the default of an argument that the whole class leaves out."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

CODE = """
import math

import torch
from torch import nn


class Places(nn.Module):
    def __init__(self, width, max_len=200):
        super().__init__()
        table = torch.zeros(max_len, width)
        for at in range(max_len):
            for pair in range(width // 2):
                angle = at / 10000 ** (2 * pair / width)
                table[at, 2 * pair] = math.sin(angle)
                table[at, 2 * pair + 1] = math.cos(angle)
        self.table = table.unsqueeze(0)

    def forward(self, ids):
        return self.table


class Rows(nn.Module):
    def __init__(self, vocab_size, width, seq_len=48):
        super().__init__()
        self.words, self.places = nn.Embedding(vocab_size, width), Places(width, seq_len)

    def forward(self, ids):
        return self.words(ids) + self.places(ids)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.merge = nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, seen):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(seen == 0, -1e9)
        x = self.first(x + self.merge((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)))
        return self.second(x + self.narrow(torch.relu(self.wide(x))))


class BertEncoder(nn.Module):
    def __init__(self, vocab_size, d_model=96, n_layers=4, n_heads=4):
        super().__init__()
        self.d_model = d_model
        self.rows = Rows(vocab_size, d_model)
        self.layers = nn.ModuleList(Layer(d_model, n_heads) for _ in range(n_layers))

    def forward(self, ids):
        seen = (ids > 0)[:, None, None]
        x = self.rows(ids)
        for layer in self.layers:
            x = layer(x, seen)
        return x


class BertForWords(nn.Module):
    def __init__(self, bert: BertEncoder, vocab_size):
        super().__init__()
        self.bert, self.head = bert, nn.Linear(bert.d_model, vocab_size)

    def forward(self, ids):
        return self.head(self.bert(ids))
"""
CLAUSES = "encoder.formula", "encoder.padding-invariance", "positional_encoding.formula"
SAID = "seq_len="
TABLES = {
    "plain": (),
    "buffer": (
        ("self.table = table.unsqueeze(0)", 'self.register_buffer("table", table.unsqueeze(0))'),
    ),
}


@share(2, rest=1)
@pytest.mark.parametrize("name", ["BertEncoder", "BertForWords"])
@pytest.mark.parametrize("table", TABLES)
def test_length_of_a_default_that_the_class_leaves_out_is_a_size(tmp_path, name, table):
    backend = adapted(tmp_path, name, edited(CODE, *TABLES[table]))
    assert any(SAID in one for one in backend.assumed)
    assert broken(backend, *CLAUSES) == []


@share(2, rest=1)
@pytest.mark.parametrize(
    "edit",
    [
        ("x = self.first(x + self.merge", "x = self.first(self.merge"),
        ("math.sqrt(q.shape[-1])", "math.sqrt(x.shape[-1])"),
        ("scores.softmax(-1)", "scores.softmax(-2)"),
        ("self.words(ids) + self.places(ids)", "self.words(ids) + self.places(ids).flip(1)"),
    ],
)
def test_mistakes_of_a_class_of_one_default_length_are_not_excused(tmp_path, edit):
    assert asked_or_broken(tmp_path, "BertEncoder", CODE, *edit, *CLAUSES)
