"""Tables of positions that are called with whole numbers, and frozen tables of tokens."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

import attentest
from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class AbsolutePositionalEmbedding(nn.Module):
    def __init__(self, max_seq_len, embedding_dim):
        super().__init__()
        self.table = nn.Embedding(max_seq_len, embedding_dim)

    def forward(self, x):
        batch, length = x.size()
        return self.table(torch.arange(length, device=x.device).repeat(batch, 1))


class PositionEmbedding(nn.Module):
    def __init__(self, max_seq_len, embedding_dim):
        super().__init__()
        self.table = nn.Embedding(max_seq_len, embedding_dim)

    def forward(self, position_ids):
        return self.table(position_ids)


class ShapedPositionalEmbedding(nn.Module):
    def __init__(self, num_positions, embedding_dim):
        super().__init__()
        self.table = nn.Embedding(num_positions, embedding_dim)

    def forward(self, input_ids_shape, past_key_values_length=0):
        batch, length = input_ids_shape[:2]
        first = past_key_values_length
        return self.table(torch.arange(first, first + length, device=self.table.weight.device))
"""
FORMULA = "positional_encoding.formula"
NAMES = ["AbsolutePositionalEmbedding", "PositionEmbedding", "ShapedPositionalEmbedding"]


@pytest.mark.parametrize("name", NAMES)
def test_rows_in_order_are_judged(tmp_path: Path, name: str) -> None:
    backend = adapted(tmp_path, name, CODE)
    assert broken(backend, FORMULA) == []
    written = tmp_path / "adapter.py"
    written.write_text(backend.written())
    assert attentest.check(f"{written}:backend", clauses=[FORMULA]).conforms


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        (NAMES[0], "repeat(batch, 1)", "repeat(batch, 1) * 0"),
        (NAMES[0], "repeat(batch, 1)", "repeat(batch, 1) + (x != 1).long().cumsum(1) * 0 + x[:1]"),
        (NAMES[1], "self.table(position_ids)", "self.table(position_ids.flip(1))"),
        (NAMES[1], "position_ids", "x"),
        (NAMES[2], "arange(first, first + length", "arange(first + 1, first + length + 1"),
        (NAMES[2], "first + length", "first + batch"),
    ],
)
def test_other_rows_are_asked_about_or_caught(
    tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, name, CODE, right, wrong, FORMULA)


FROZEN = """
import torch
from torch import nn


class FixedEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, d_model)
        self.emb.weight.requires_grad = False

    def forward(self, tokens):
        return self.emb(tokens).detach()
"""


def test_frozen_and_detached_table_is_one_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="a table that is not trained"):
        adapted(tmp_path, "FixedEmbedding", FROZEN)


def test_detached_rows_of_a_trained_table_are_caught(tmp_path: Path) -> None:
    wrong = FROZEN.replace("        self.emb.weight.requires_grad = False\n", "")
    backend = adapted(tmp_path, "FixedEmbedding", wrong)
    assert broken(backend, "embedding.gradient-only-to-used-rows")
