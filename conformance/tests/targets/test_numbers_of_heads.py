"""Attention whose number of heads has the name of their width, and attention with such a width."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

SOURCE = """
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, hidden_size, head_size=8):
        super().__init__()
        self.head_size, self.width = head_size, hidden_size // head_size
        self.q, self.k, self.v, self.out = (
            nn.Linear(hidden_size, hidden_size, bias=False) for _ in range(4)
        )

    def forward(self, query, key, value, mask):
        q, k, v = (
            linear(x).unflatten(-1, (self.head_size, self.width)).transpose(1, 2)
            for linear, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        scores = q @ k.mT / self.width**0.5
        scores = scores.masked_fill(mask.unsqueeze(1), -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
BY_WIDTH = SOURCE.replace(
    "self.head_size, self.width = head_size, hidden_size // head_size",
    "self.head_size, self.width = hidden_size // head_size, head_size",
)
CLAUSES = ("multi_head_attention.formula",)


@pytest.mark.proof
def test_a_number_of_heads_that_is_called_their_size_is_read_by_its_numbers(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", SOURCE)
    assert any("head_size is the number of heads" in one for one in backend.assumed)
    assert backend.limits.heads is None
    assert broken(backend, *CLAUSES) == []
    assert [
        one.meaning for one in backend.recipes["multi_head_attention"].call.styles.values()
    ] == ["blocks"]


def test_a_width_of_heads_stays_one(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", BY_WIDTH)
    assert not any("number of heads" in one for one in backend.assumed)
    assert broken(backend, *CLAUSES) == []


@pytest.mark.proof
@pytest.mark.parametrize("source", [SOURCE, pytest.param(BY_WIDTH, marks=pytest.mark.proof)])
def test_neither_reading_of_a_mistake_is_taken_unasked(tmp_path: Path, source: str) -> None:
    mistaken = source.replace("softmax(-1)", "softmax(-2)")
    with pytest.raises(Unclear, match="is the width of a head by its name") as caught:
        adapted(tmp_path, "MultiHeadAttention", mistaken)
    assert "--argument heads=head_size" in str(caught.value)
    counted = adapted(tmp_path, "MultiHeadAttention", mistaken, arguments={"heads": "head_size"})
    assert broken(counted, *CLAUSES)
