"""Attention that refuses heads of a width of 2, as rotary positions that are stretched do."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

CODE = """
import torch
from torch import nn


class Turns(nn.Module):
    def __init__(self, dim, theta=10000.0, stretch=1.0):
        super().__init__()
        theta *= stretch ** (dim / (dim - 2))
        places = torch.arange(0, dim, 2).float() / dim
        self.freqs = nn.Parameter(theta**-places, requires_grad=False)

    def forward(self, x):
        places = torch.arange(x.shape[-2], device=x.device, dtype=x.dtype)
        angles = torch.outer(places, self.freqs).repeat_interleave(2, dim=-1)
        first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
        turned = torch.stack([-second, first], dim=-1).flatten(-2)
        return x * angles.cos() + turned * angles.sin()


class Attention(nn.Module):
    def __init__(self, dim, dim_head=64, heads=8):
        super().__init__()
        self.heads, self.turns = heads, Turns(dim_head)
        self.norm = nn.RMSNorm(dim)
        self.to_qkv = nn.Linear(dim, 3 * dim_head * heads, bias=False)
        self.to_out = nn.Linear(dim_head * heads, dim, bias=False)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.to_qkv(self.norm(x)).chunk(3, dim=-1)
        )
        q, k = self.turns(q), self.turns(k)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))
"""
FORMULA = "multi_head_attention.formula"


def test_attention_with_a_least_width_of_heads_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Attention", CODE)
    assert backend.limits.least_head_width == 4
    assert not broken(backend, FORMULA)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("q.shape[-1] ** -0.5", "q.shape[-1] ** 0.5"),
        ("self.turns(q), self.turns(k)", "self.turns(q), k"),
    ],
)
def test_mistakes_in_such_attention_are_found(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "Attention", CODE, right, wrong, FORMULA)
