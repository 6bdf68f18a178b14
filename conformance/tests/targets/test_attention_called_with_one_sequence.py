"""Attention that views its keys as its queries: right where code gives it one sequence alone."""

from pathlib import Path
from typing import Any

import pytest
from mistaken_code import adapted, broken

CODE = """
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, self.width = heads, d_model // heads
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))
        self.out = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b, n, _ = query.shape
        q = self.q(query).view(b, n, self.heads, self.width).transpose(1, 2)
        k = self.k(key).view(b, n, self.heads, self.width).transpose(1, 2)
        v = self.v(value).view(b, n, self.heads, self.width).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / self.width**0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, -1))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, heads)
        self.network = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)
        )

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, x, x, mask))
        return self.norm2(x + self.network(x))
"""
CROSS = """

class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.own = MultiHeadAttention(d_model, heads)
        self.cross = MultiHeadAttention(d_model, heads)

    def forward(self, x, memory, mask):
        x = x + self.own(x, x, x, mask)
        return x + self.cross(x, memory, value=memory)
"""
CLAUSES = ("multi_head_attention.formula", "multi_head_attention.cross-lengths")
ASSUMED = "attends within one sequence, as all code around calls it"


def test_attention_that_code_calls_with_one_sequence_is_judged_with_that(tmp_path: Path) -> None:
    backend: Any = adapted(tmp_path, "MultiHeadAttention", CODE)
    assert any(ASSUMED in one for one in backend.assumed)
    assert broken(backend, *CLAUSES) == []


def test_mistake_of_attention_that_code_calls_with_one_sequence_is_found(tmp_path: Path) -> None:
    wrong = CODE.replace(" / self.width**0.5", "")
    assert broken(adapted(tmp_path, "MultiHeadAttention", wrong), *CLAUSES)


@pytest.mark.parametrize("source", [CODE + CROSS, CODE.split("class EncoderLayer")[0]])
def test_attention_that_code_calls_with_a_memory_or_not_at_all_has_to_take_it(
    source: str, tmp_path: Path
) -> None:
    assert broken(adapted(tmp_path, "MultiHeadAttention", source), *CLAUSES)


def test_attention_that_another_file_calls_with_a_memory_has_to_take_it(tmp_path: Path) -> None:
    decoder = f"from torch import nn\nfrom own import MultiHeadAttention\n{CROSS}"
    (tmp_path / "decoder.py").write_text(decoder)
    assert broken(adapted(tmp_path, "MultiHeadAttention", CODE), *CLAUSES)
