"""Positional encodings that return their input as it is, or a multiple of it."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, broken, edited

SOURCE = """
import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=500):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        place = torch.arange(max_len).unsqueeze(1)
        rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        table = torch.zeros(max_len, d_model)
        table[:, 0::2] = torch.sin(place * rate)
        table[:, 1::2] = torch.cos(place * rate)
        self.register_buffer("table", table)

    def forward(self, x):
        rows = self.table[: x.size(1)]
        return self.dropout(x + rows)
"""
PLAIN = edited(SOURCE, ("(x + rows)", "(x)"))


def test_encoding_that_adds_its_table_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "PositionalEncoding", SOURCE)
    assert broken(backend, "positional_encoding.formula") == []


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("self.dropout(x)", "adds no positions to it"),
        ("self.dropout(x), rows", "adds no positions to it"),
        ("(self.dropout(x * x.size(-1) ** 0.5), rows)", "the root of d_model, and adds no"),
    ],
)
def test_encoding_that_adds_nothing_is_a_question(tmp_path: Path, result: str, words: str) -> None:
    (tmp_path / "own.py").write_text(edited(PLAIN, ("self.dropout(x)", result)))
    assert words in " ".join(asked(f"{tmp_path / 'own.py'}:PositionalEncoding").split())


def test_encoding_that_adds_nothing_is_judged_where_that_is_declared(tmp_path: Path) -> None:
    choices = {"positional_encoding": "none"}
    backend = adapted(tmp_path, "PositionalEncoding", PLAIN, choices=choices)
    assert broken(backend, "positional_encoding.formula") == []
    assert broken(
        adapted(tmp_path, "PositionalEncoding", PLAIN, strict=True), "positional_encoding.formula"
    )


def test_table_of_zeros_that_is_trained_is_judged(tmp_path: Path) -> None:
    learned = edited(
        SOURCE,
        ('self.register_buffer("table", table)', "self.table = nn.Parameter(0 * table)"),
    )
    assert (
        broken(adapted(tmp_path, "PositionalEncoding", learned), "positional_encoding.formula")
        == []
    )
