"""Lazy modules, whose parameters get their shapes at the first call."""

from pathlib import Path

from mistaken_code import adapted, asked_or_broken, broken

import attentest

CODE = """
from torch import nn


class PositionWiseFFN(nn.Module):
    def __init__(self, ffn_num_hiddens, ffn_num_outputs):
        super().__init__()
        self.dense1 = nn.LazyLinear(ffn_num_hiddens)
        self.relu = nn.ReLU()
        self.dense2 = nn.LazyLinear(ffn_num_outputs)

    def forward(self, X):
        return self.dense2(self.relu(self.dense1(X)))
"""
FORMULA = "feed_forward.formula"


def test_lazy_module_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "PositionWiseFFN", CODE)
    assert broken(backend, FORMULA) == []
    written = tmp_path / "adapter.py"
    written.write_text(backend.written())
    assert attentest.check(f"{written}:backend", clauses=[FORMULA]).conforms


def test_mistake_in_a_lazy_module_is_caught(tmp_path: Path) -> None:
    wrong = "self.relu(self.dense2(self.dense1(X)))"
    right = "self.dense2(self.relu(self.dense1(X)))"
    assert asked_or_broken(tmp_path, "PositionWiseFFN", CODE, right, wrong, FORMULA)


LAZY_HEAD = """
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab_size, dim, heads, layers, inner):
        super().__init__()
        self.rows = nn.Embedding(vocab_size, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, inner, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.LazyLinear(3)

    def forward(self, ids, segments, places=None):
        x = self.layers(self.rows(ids))
        return x, None if places is None else self.head(x[:, places[0]])
"""


def test_lazy_head_that_an_optional_argument_calls_gets_its_shapes(tmp_path):
    backend = adapted(tmp_path, "Tagger", LAZY_HEAD)
    assert broken(backend, "encoder.formula") == []
