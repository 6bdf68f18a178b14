"""Attention that takes a score of 0 for a hidden one: values of zero make it NaN."""

from pathlib import Path

from mistaken_code import adapted, broken

from attentest.judging.bench import Bench
from attentest.judging.judge import judge

SOURCE = """
import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key, self.value, self.out = (
            nn.Linear(d_model, d_model, bias=False) for _ in range(4)
        )

    def split(self, x):
        return x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)

    def forward(self, x):
        q, k, v = (self.split(one(x)) for one in (self.query, self.key, self.value))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = scores * torch.ones(scores.shape[-2:], device=x.device).tril()
        scores[scores == 0] = float("-inf")
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
CLAUSE = "multi_head_attention.projection-bias"


def test_zeros_that_become_nan_are_a_finding_without_a_line(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "CausalAttention", SOURCE)
    assert broken(backend, "multi_head_attention.formula") == []
    verdict = judge(Bench(backend), CLAUSE)
    assert "not finite" in verdict.message
    assert verdict.location is None
    assert not verdict.diagnosis
