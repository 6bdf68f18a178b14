"""Rotary positions of queries and keys (T, B, H, D), whose sequence is the first axis."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim)))

    def forward(self, x, seq_dim=1, seq_len=None):
        seq_len = x.shape[seq_dim] if seq_len is None else seq_len
        places = torch.arange(seq_len, device=x.device).float()
        freqs = torch.einsum("i,j->ij", places, self.inv_freq.float())
        table = torch.cat((freqs, freqs), dim=-1)
        return table.cos()[:, None, None, :].to(x.dtype), table.sin()[:, None, None, :].to(x.dtype)


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin, offset: int = 0):
    cos, sin = cos[offset : q.shape[0] + offset], sin[offset : q.shape[0] + offset]
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
"""


@pytest.mark.parametrize("name", ["RotaryEmbedding", "apply_rotary_pos_emb"])
def test_sequence_that_comes_first_is_an_assumption(tmp_path: Path, name: str) -> None:
    backend = adapted(tmp_path, name, CODE)
    assert any("x (T, B, H, D)" in one for one in backend.assumed)
    assert broken(backend, "rotary.formula") == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("(-b, a)", "(-b, b)"),
        ("k * cos + rotate_half(k) * sin", "k"),
        ("arange(seq_len", "arange(1, seq_len + 1"),
    ],
)
def test_wrong_turns_of_a_first_axis_are_not_assumed(
    tmp_path: Path, right: str, wrong: str
) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "RotaryEmbedding", CODE.replace(right, wrong))


def test_batch_first_by_the_documentation_is_not_read_as_sequence_first(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "RotaryEmbedding", CODE, strict=True)
    code = CODE.replace(
        "Module):\n", 'Module):\n    """Tables for x (batch, time, heads, width)."""\n', 1
    )
    with pytest.raises(Unclear):
        adapted(tmp_path, "RotaryEmbedding", code)
