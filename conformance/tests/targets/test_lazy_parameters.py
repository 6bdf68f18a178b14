"""Lazy modules, whose parameters get their shapes at the first call."""

from pathlib import Path

from mistaken_code import adapted, asked, asked_or_broken, broken

import attentest
from attentest.targets.members import members

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


LAZY_MODEL = """
from torch import nn


class Translator(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, heads, layers):
        super().__init__()
        self.source = nn.Embedding(src_vocab, d_model)
        self.target = nn.Embedding(tgt_vocab, d_model)
        self.body = nn.Transformer(d_model, heads, layers, layers, 4 * d_model, batch_first=True)
        self.head = nn.LazyLinear(tgt_vocab)

    def forward(self, src, tgt):
        return self.head(self.body(self.source(src), self.target(tgt)))


class PositionWiseFFN(nn.Module):
    def __init__(self, inner, width):
        super().__init__()
        self.first, self.second = nn.LazyLinear(inner), nn.LazyLinear(width)

    def forward(self, x):
        return self.second(self.first(x).relu())
"""


def test_file_with_a_lazy_model_lists_its_parts(tmp_path):
    (tmp_path / "own.py").write_text(LAZY_MODEL)
    found = {one.name: one.component for one in members(str(tmp_path / "own.py")) or ()}
    assert found["PositionWiseFFN"] == "feed_forward"
    assert "nn.LazyLinear" in asked(f"{tmp_path / 'own.py'}:Translator", "model")
