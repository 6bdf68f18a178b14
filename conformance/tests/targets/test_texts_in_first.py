"""Encoders that take ids (L, B): positions run along the first axis, and layers attend there."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

SOURCE = """
import math

import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, d_model, dropout, max_len=5000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        places = torch.arange(max_len).unsqueeze(1)
        rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        table = torch.zeros(max_len, 1, d_model)
        table[:, 0, 0::2] = torch.sin(places * rates)
        table[:, 0, 1::2] = torch.cos(places * rates)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        return self.dropout(x + self.table[: x.size(0)])


class TextEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, d_ff, layers, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = Positions(d_model, dropout)
        layer = nn.TransformerEncoderLayer(d_model, heads, d_ff, dropout)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.d_model = d_model

    def forward(self, ids):
        x = self.embedding(ids) * math.sqrt(self.d_model)
        return self.encoder(self.positions(x))
"""

FORMULA = "encoder.formula"
SAID = "takes ids (L, B), the sequence first"
LEARNED = (
    ("self.positions = Positions(d_model, dropout)", "self.rows = nn.Embedding(512, d_model)"),
    ("self.positions(x)", "x + self.rows(torch.arange(len(ids)))[:, None]"),
)
POOLED = (("self.encoder(self.positions(x))", "self.encoder(self.positions(x)).mean(0)"),)


@pytest.mark.parametrize("edits", [(), LEARNED, POOLED], ids=["sines", "learned", "pooled"])
def test_ids_in_first_are_an_assumption(tmp_path: Path, edits: tuple[tuple[str, str], ...]) -> None:
    backend = adapted(tmp_path, "TextEncoder", edited(SOURCE, *edits))
    assert any(SAID in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert "positional_encoding" not in backend.components
    assert not broken(backend, FORMULA)


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "d_ff, dropout)\n        self.encoder",
            "d_ff, dropout, batch_first=True)\n        self.encoder",
        ),
        ("/ d_model))", "/ d_model) * 2)"),
        ("torch.cos(places", "torch.sin(places"),
        ("* math.sqrt(self.d_model)", "* self.d_model"),
    ],
    ids=["batch-first", "rates", "sines", "scale"],
)
def test_mistake_is_no_pass(tmp_path: Path, right: str, wrong: str) -> None:
    clauses = ("positional_encoding.formula",) if "batch_first" in wrong else (FORMULA,)
    assert asked_or_broken(tmp_path, "TextEncoder", SOURCE, right, wrong, *clauses)
