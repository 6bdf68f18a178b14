"""Layers of RMS norms whose paths around the sublayers begin behind the norms."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

LAYER = """
import torch
from torch import nn


class ScaleNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.scale * x / (x.norm(2, dim=-1, keepdim=True) / x.shape[-1] ** 0.5 + 1e-8)


class EncoderBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = ScaleNorm(width), ScaleNorm(width)

    def attend(self, x):
        q, k, v = (one(x).unflatten(-1, (self.heads, -1)) for one in (self.q, self.k, self.v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        return self.out(torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(torch.relu(self.up(self.norm2(x))))
"""
BEHIND = (
    ("x = x + self.attend(self.norm1(x))", "x = self.norm1(x)\n        x = x + self.attend(x)"),
    ("return x + self.down", "x = self.norm2(x)\n        return x + self.down"),
    ("self.up(self.norm2(x))", "self.up(x)"),
)


def test_paths_that_begin_behind_rms_norms_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="to the output of norm1 and norm2"):
        adapted(tmp_path, "EncoderBlock", edited(LAYER, *BEHIND))


def test_paths_around_rms_norms_are_right(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "EncoderBlock", LAYER), "encoder.layer-formula")


def test_one_path_behind_its_norm_is_a_violation(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "EncoderBlock", edited(LAYER, BEHIND[0]))
    assert broken(backend, "encoder.layer-formula")
