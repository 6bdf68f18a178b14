"""Causal attention with its norm and its residual sum inside, and with a weight of that sum."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        n = x.shape[1]
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.to_qkv(self.norm(x)).chunk(3, -1)
        )
        scores = q @ k.mT * q.shape[-1] ** -0.5
        hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
        return x + self.to_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
NAME, FORMULA = "CausalSelfAttention", "multi_head_attention.formula"
WEIGHED = edited(
    CODE,
    ("self.heads, self.norm = heads, nn.LayerNorm(dim)", "self.heads = heads"),
    ("self.to_qkv(self.norm(x))", "self.to_qkv(x)"),
    ("return x + self.to_out", "return x + 0.9 * self.to_out"),
)


def test_causal_attention_with_a_norm_and_a_residual_sum_is_judged(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, NAME, CODE), FORMULA)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [("** -0.5", "** 0.5"), ("softmax(-1)", "softmax(-2)"), ("triu(1)", "triu(2)")],
)
def test_mistakes_in_it_are_found(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, NAME, CODE, right, wrong, FORMULA)


@pytest.mark.proof
def test_weight_of_a_residual_sum_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="adds its input to a part of its result"):
        adapted(tmp_path, NAME, WEIGHED)
