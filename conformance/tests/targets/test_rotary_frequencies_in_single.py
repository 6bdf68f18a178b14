"""Rotary positions whose frequencies alone are rounded to single precision."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

CODE = """
import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, embedding_dims):
        super().__init__()
        share = 2.0 * torch.arange(embedding_dims // 2, dtype=torch.float32) / embedding_dims
        self.register_buffer("timescale", 10000.0**share, persistent=False)

    def forward(self, inputs, position=None):
        scale = self.timescale.to(inputs.dtype)
        if position is None:
            position = torch.arange(inputs.shape[1], device=inputs.device)[None]
        angles = position[..., None, None].float() / scale
        first, second = inputs.chunk(2, dim=-1)
        sine, cosine = angles.sin(), angles.cos()
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
"""
SLUGS = ("rotary.arithmetic", "rotary.formula")


def test_frequencies_in_single_precision_conform(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "RotaryEmbedding", CODE)
    assert backend.choices["rotary_arithmetic"] == "float32"
    assert broken(backend, *SLUGS) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("+ first * sine", "- first * sine"), ("10000.0**share", "10000.0**(share * 0.999)")],
)
def test_mistakes_beside_them_are_caught(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "RotaryEmbedding", CODE, right, wrong, *SLUGS)
