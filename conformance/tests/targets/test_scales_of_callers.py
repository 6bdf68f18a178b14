"""Attention whose caller gives the divisor or the factor of the scores."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def __init__(self, scale, dropout):
        super().__init__()
        self.scale = scale
        self.dropout = nn.Dropout(dropout)

    def forward(self, q, k, v, mask=None):
        scores = torch.matmul(q / self.scale, k.transpose(-1, -2))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return torch.matmul(weights, v), weights
"""
NAME = "ScaledDotProductAttention"
DIVIDED, MULTIPLIED = "q / self.scale", "q * self.scale"
FORMULA = "attention.formula"


@pytest.mark.parametrize("scaled", [DIVIDED, MULTIPLIED])
def test_scale_of_the_caller_is_read_by_its_numbers(tmp_path: Path, scaled: str) -> None:
    backend = adapted(tmp_path, NAME, CODE.replace(DIVIDED, scaled))
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, FORMULA) == []


def test_scores_that_a_mask_halves_are_a_violation(tmp_path: Path) -> None:
    blocked = 'scores = scores.masked_fill(mask == 0, float("-inf"))'
    wrong = CODE.replace(blocked, blocked.replace("= scores", "= (scores / 2)"))
    assert broken(adapted(tmp_path, NAME, wrong), FORMULA)


@pytest.mark.parametrize("wrong", ["dim=-1", "k.transpose(-1, -2)"])
def test_other_numbers_are_a_question(tmp_path: Path, wrong: str) -> None:
    code = CODE.replace(wrong, {"dim=-1": "dim=-2"}.get(wrong, f"2 * {wrong}"))
    with pytest.raises(Unclear, match="nothing says what scale is"):
        adapted(tmp_path, NAME, code)


WIDTHS = """
import math

import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.root = math.sqrt(dim)

    def forward(self, query, key, value, mask=None):
        scores = torch.matmul(query, key.transpose(-1, -2)) / self.root
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        weights = torch.softmax(scores, -1)
        return torch.matmul(weights, value), weights
"""


@pytest.mark.parametrize("name", ["dim", "d_model", "hidden_dim"])
def test_only_width_of_attention_without_projections_is_that_of_its_queries(
    tmp_path: Path, name: str
) -> None:
    code = WIDTHS.replace("dim", name)
    assert broken(adapted(tmp_path, NAME, code), FORMULA) == []


@pytest.mark.parametrize("wrong", ["dim", "math.sqrt(2 * dim)"])
def test_another_scale_by_a_width_is_a_violation(tmp_path: Path, wrong: str) -> None:
    code = WIDTHS.replace("math.sqrt(dim)", wrong)
    assert broken(adapted(tmp_path, NAME, code), FORMULA)
