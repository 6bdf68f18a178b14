"""Attention whose scores have a soft cap, which no name says."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

CODE = """
import torch
from torch import nn


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class Attention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.heads, self.size = num_heads, hidden_size // num_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(hidden_size, hidden_size, bias=False) for _ in range(4)
        )

    def turned(self, x):
        rates = 10000 ** (-torch.arange(0, self.size, 2, dtype=x.dtype) / self.size)
        angles = torch.outer(torch.arange(x.shape[2], dtype=x.dtype), rates)
        angles = torch.cat((angles, angles), dim=-1)
        return x * angles.cos() + rotate_half(x) * angles.sin()

    def forward(self, x, mask=None):
        b, t, d = x.shape
        q, k, v = (
            each(x).view(b, t, self.heads, self.size).transpose(1, 2)
            for each in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = self.turned(q), self.turned(k)
        scores = q @ k.transpose(-1, -2) / self.size**0.5
        scores = 50.0 * torch.tanh(scores / 50.0)
        if mask is not None:
            scores = scores + mask
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""
TURN = "        q, k = self.turned(q), self.turned(k)\n"
CLAUSE = "multi_head_attention.formula"


@pytest.mark.parametrize("cap", [50.0, pytest.param(30.0, marks=pytest.mark.proof)])
def test_cap_is_measured_beside_rotary_positions(tmp_path: Path, cap: float) -> None:
    backend = adapted(tmp_path, "Attention", CODE.replace("50.0", str(cap)))
    assert backend.choices["score_cap"] == cap
    assert any("score_cap" in one for one in backend.assumed)
    assert broken(backend, CLAUSE, "multi_head_attention.rotary") == []


def test_cap_is_measured_without_positions(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Attention", CODE.replace(TURN, ""))
    assert backend.choices["score_cap"] == 50.0
    assert broken(backend, CLAUSE) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("50.0 * torch.tanh(scores / 50.0)", "torch.tanh(scores / 50.0)"),
        pytest.param("/ self.size**0.5", "", marks=pytest.mark.proof),
        pytest.param(".softmax(-1)", ".softmax(-2)", marks=pytest.mark.proof),
    ],
)
def test_mistakes_are_not_excused(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "Attention", CODE.replace(TURN, ""), right, wrong, CLAUSE)
