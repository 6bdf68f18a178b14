"""A question on attention that is causal by itself names the line at which the numbers differ."""

from pathlib import Path

import pytest
from mistaken_code import adapted

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


def turn(x):
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half).to(x) / half)
    angles = torch.arange(x.shape[-2]).to(x)[:, None] * frequencies
    cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos + turned * sin


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, width, bias=False)
        self.v = nn.Linear(width, width, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.q_norm = nn.RMSNorm(width // heads, eps=1e-6)
        self.k_norm = nn.RMSNorm(width // heads, eps=1e-6)

    def forward(self, x, mask=None):
        b, t, c = x.shape
        q, k, v = (
            f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v)
        )
        q, k = turn(self.q_norm(q)), turn(self.k_norm(k))
        scores = q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5
        scores = scores.masked_fill(~torch.ones(t, t, dtype=torch.bool).tril(), -torch.inf)
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], -1e30)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
"""
RIGHT, WRONG = "x * cos + turned * sin", "x * sin + turned * cos"


def test_right_attention_is_not_asked_about(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Attention", CODE)
    assert dict(backend.choices)["attention_causality"] == "built-in"


@pytest.mark.proof
def test_question_names_the_line(tmp_path: Path) -> None:
    line = CODE[: CODE.index(RIGHT)].count("\n") + 1
    with pytest.raises(Unclear, match=rf"later positions by itself(.|\n)*own\.py:{line} "):
        adapted(tmp_path, "Attention", CODE.replace(RIGHT, WRONG))
