"""Tables of angles whose argument is called `pos`, devices, and numbers of first positions (B,)."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

MADE = """
import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim)))

    def forward(self, max_seq_len, *, device):
        places = torch.arange(max_seq_len, device=device, dtype=self.inv_freq.dtype)
        freqs = torch.einsum("i,j->ij", places, self.inv_freq)
        return torch.cat((freqs, freqs), dim=-1)


def rotate_half(t):
    a, b = t.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def apply_rotary_pos_emb(pos, t):
    return t * pos.cos() + rotate_half(t) * pos.sin()
"""

STARTED = """
import torch


def apply_rope(q, k, offset: torch.Tensor, max_period: float = 10_000):
    places = offset.float().view(-1, 1) + torch.arange(q.shape[2], device=q.device)
    freqs = max_period ** (-torch.arange(0, q.shape[3], 2, device=q.device).float() / q.shape[3])
    angles = places.view(q.shape[0], 1, -1, 1) * freqs
    cos, sin = angles.cos().to(q.dtype), angles.sin().to(q.dtype)

    def turned(x):
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)

    return turned(q), turned(k)
"""


@pytest.mark.parametrize("name", ["RotaryEmbedding", "apply_rotary_pos_emb"])
def test_table_at_the_place_of_positions_is_read(tmp_path: Path, name: str) -> None:
    backend = adapted(tmp_path, name, MADE)
    assert broken(backend, "rotary.formula", "rotary.follows-moves") == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("(-b, a)", "(b, a)"),
        ("rotate_half(t) * pos.sin()", "rotate_half(t) * pos.cos().sin()"),
        ("arange(0, dim, 2)", "arange(1, dim + 1, 2)"),
    ],
)
def test_mistakes_in_such_a_table_or_its_use_are_violations(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert right in MADE
    backend = adapted(tmp_path, "apply_rotary_pos_emb", MADE.replace(right, wrong), anyway=True)
    assert broken(backend, "rotary.formula")


def test_first_positions_of_every_sequence_are_given(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "apply_rope", STARTED)
    assert "offset" in backend.limits.positions
    assert broken(backend, "rotary.formula", "rotary.positions-given") == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("offset.float().view(-1, 1) +", "0 * offset.view(-1, 1) +"), ("a * cos - b", "a * cos + b")],
)
def test_first_positions_that_are_ignored_are_a_violation(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert right in STARTED
    backend = adapted(tmp_path, "apply_rope", STARTED.replace(right, wrong))
    assert broken(backend, "rotary.formula", "rotary.positions-given")
