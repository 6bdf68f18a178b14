"""The line of a wrong turn that one call makes of queries and of keys."""

from pathlib import Path

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge

ROTARY = """
import torch
from torch import nn


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


class Rotary(nn.Module):
    def __init__(self, head_dim, theta=10000.0, max_len=64):
        super().__init__()
        rates = theta ** (-torch.arange(0, head_dim, 2).double() / head_dim)
        angles = torch.outer(torch.arange(max_len).double(), rates).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, q, k):
        cos, sin = self.cos[: q.shape[-2]].to(q.dtype), self.sin[: q.shape[-2]].to(q.dtype)
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
"""


def test_line_is_that_of_the_function_that_turns_both(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(ROTARY.replace("[-b, a]", "[b, a]"))
    backend = attentest.adapted(f"{tmp_path / 'own.py'}:Rotary")
    location = judge(Bench(backend), "rotary.formula").location
    assert location is not None
    assert location.code == "return torch.cat([b, a], dim=-1)"
    assert location.computed == "(b, a) for each pair"
    assert location.confirmed


def test_right_turn_has_no_line(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(ROTARY)
    verdict = judge(Bench(attentest.adapted(f"{tmp_path / 'own.py'}:Rotary")), "rotary.formula")
    assert not verdict.status.broken
    assert verdict.location is None
