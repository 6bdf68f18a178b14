"""Projections that can be assigned in several ways: one known mistake can say which way is meant.

Heads of query, key and value in turn, in one matrix, are what a widespread video course computes.
"""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status

ATTENTION = """
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.per_head = heads, width // heads
        self.joined = nn.Linear(width, 3 * width)
        self.last = nn.Linear(width, width)

    def forward(self, x, mask=None):
        batch, length, width = x.size()
        joined = self.joined(x).reshape(batch, length, self.heads, 3 * self.per_head)
        query, key, value = joined.permute(0, 2, 1, 3).chunk(3, dim=-1)
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.per_head)
        if mask is not None:
            scores = scores + mask
        mixed = scores.softmax(dim=-1) @ value
        mixed = mixed.permute(0, 2, 1, 3).reshape(batch, length, width)
        return self.last(mixed)
"""
LAYER = f"""
{ATTENTION}

class EncoderLayer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention = MultiHeadAttention(width, heads)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width)
        )

    def forward(self, x, mask=None):
        x = self.first(x + self.attention(x, mask))
        return self.second(x + self.network(x))
"""
MISTAKES = [
    ("mixed.permute(0, 2, 1, 3).reshape", "mixed.reshape"),
    ("softmax(dim=-1)", "softmax(dim=-2)"),
    ("math.sqrt(self.per_head)", "math.sqrt(width)"),
    ("/ math.sqrt(self.per_head)", "/ self.per_head"),
    (" / math.sqrt(self.per_head)", ""),
]


def test_attention_with_heads_in_turn_in_one_matrix_conforms(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", ATTENTION)
    assert not broken(backend, "multi_head_attention.formula")


def test_layer_with_such_attention_conforms(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "EncoderLayer", LAYER), "encoder.layer-formula")


@pytest.mark.parametrize(("old", "new"), MISTAKES)
def test_attention_with_one_known_mistake_is_assigned_by_it(
    old: str, new: str, tmp_path: Path
) -> None:
    assert ATTENTION.count(old) == 1
    backend = adapted(tmp_path, "MultiHeadAttention", ATTENTION.replace(old, new))
    assert broken(backend, "multi_head_attention.formula")
    given = [one for one in backend.assumed if "this map" in one or "several maps" in one]
    assert len(given) == 1
    assert "one known mistake gives the numbers under this map" in given[0]


@pytest.mark.proof
@pytest.mark.parametrize(("old", "new"), MISTAKES[:2])
def test_layer_with_wrong_attention_is_a_violation(old: str, new: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "EncoderLayer", LAYER.replace(old, new))
    verdict = judge(Bench.for_status(backend), "encoder.layer-formula")
    assert verdict.status is Status.VIOLATION


@pytest.mark.proof
def test_mask_that_is_added_is_seen_where_rows_of_heads_are_mixed(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", ATTENTION.replace(*MISTAKES[0]))
    assert any("added to the scores" in one for one in backend.understood)
