"""Attention whose own mask hides the key of each query itself is causal, with one mistake."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.judging.bench import Bench
from attentest.judging.judge import judge

FORMULA = "multi_head_attention.formula"

CODE = """
import math
import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads, self.width = n_heads, d_model // n_heads
        self.q = nn.Linear(d_model, d_model)
        self.k = nn.Linear(d_model, d_model)
        self.v = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            f(x).view(b, t, self.heads, self.width).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.width)
        later = torch.ones(t, t).triu(diagonal=1).bool()
        scores = scores.masked_fill(later, float("-inf"))
        weights = scores.softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))
"""


def test_causal_attention_conforms(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "CausalSelfAttention", CODE), FORMULA)


@pytest.mark.proof
@pytest.mark.parametrize("fill", ['float("-inf")', "-1e9"])
def test_own_key_is_hidden_by_the_line_of_the_mask(tmp_path: Path, fill: str) -> None:
    wrong = CODE.replace("diagonal=1", "diagonal=0").replace('float("-inf")', fill)
    backend = adapted(tmp_path, "CausalSelfAttention", wrong)
    location = judge(Bench(backend), FORMULA).location
    assert location is not None
    assert "diagonal=0" in location.code
