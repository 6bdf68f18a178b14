"""Attention with matrices that are plain parameters, and positions inside that no name shows."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

CODE = """
import torch
from torch import nn


def turned(x, cos, sin):
    first, second = x[..., ::2], x[..., 1::2]
    return torch.stack((first * cos - second * sin, first * sin + second * cos), -1).flatten(-2)


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, n_heads, max_seq=1024):
        super().__init__()
        self.n_heads, self.size = n_heads, dim // n_heads
        self.wq, self.wk, self.wv, self.wo = (
            nn.Parameter(torch.randn(dim, dim) * dim**-0.5) for _ in range(4)
        )
        steps = torch.arange(0, self.size, 2).double() / self.size
        angles = torch.outer(torch.arange(max_seq).double(), 10000.0**-steps)
        self.cos, self.sin = angles.cos(), angles.sin()

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (
            (x @ w.T).view(b, t, self.n_heads, self.size).transpose(1, 2)
            for w in (self.wq, self.wk, self.wv)
        )
        q, k = (turned(one, self.cos[:t].to(x), self.sin[:t].to(x)) for one in (q, k))
        scores = q @ k.mT / self.size**0.5
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -torch.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d) @ self.wo.T
"""
FORMULA = "multi_head_attention.formula"


def test_square_matrices_are_told_from_their_transposes(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "CausalSelfAttention", CODE)
    assert backend.choices["rotary_pairs"] == "adjacent"
    assert broken(backend, FORMULA) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [("cos - second", "cos + second"), ("/ self.size**0.5", "/ d**0.5"), (" @ self.wo.T", "")],
)
def test_mistakes_in_such_attention_do_not_pass(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "CausalSelfAttention", CODE, right, wrong, FORMULA)
