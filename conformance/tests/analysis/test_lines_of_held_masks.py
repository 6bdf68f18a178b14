"""A causal mask that a constructor makes: its line is named, or that of its use."""

from pathlib import Path

import pytest
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge

ATTENTION = """
import math
import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, d_model, heads, max_len=64):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        seen = torch.tril(torch.ones(max_len, max_len))
        self.register_buffer("seen", seen.view(1, 1, max_len, max_len))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        scores = scores.masked_fill(self.seen[:, :, :t, :t] == 0, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
"""

MISTAKES = [
    ("torch.ones(max_len, max_len))", "torch.ones(max_len, max_len), diagonal=1)", "diagonal=1"),
    ("[:, :, :t, :t]", "[:, :, 1 : t + 1, :t]", "1 : t + 1"),
]
"""An edit that lets each position see the next one, and a part of the line that is to be named."""


@share(2)
@pytest.mark.parametrize(("old", "new", "named"), MISTAKES)
def test_line_of_a_mask_is_where_it_becomes_wrong(
    old: str, new: str, named: str, tmp_path: Path
) -> None:
    assert old in ATTENTION
    (tmp_path / "own.py").write_text(ATTENTION.replace(old, new))
    backend = attentest.adapted(f"{tmp_path / 'own.py'}:CausalSelfAttention")
    location = judge(Bench(backend), "multi_head_attention.formula").location
    assert location is not None
    assert named in location.code
    assert location.computed == "each position sees one after it too"
    assert not location.confirmed
