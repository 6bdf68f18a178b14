"""Layer norms whose result is centred over the positions, as models of series have them."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x):
        normed = self.norm(x)
        return normed - normed.mean(dim=1, keepdim=True)
"""
RIGHT = "normed - normed.mean(dim=1, keepdim=True)"


@pytest.mark.parametrize(
    "centred", [RIGHT, "normed - torch.mean(normed, dim=1).unsqueeze(1).repeat(1, x.shape[1], 1)"]
)
def test_rows_that_are_centred_over_the_positions_are_a_question(
    tmp_path: Path, centred: str
) -> None:
    with pytest.raises(Unclear, match="mean over the positions"):
        adapted(tmp_path, "LayerNorm", CODE.replace(RIGHT, centred))


@pytest.mark.parametrize(
    "wrong",
    [
        "self.norm(x - x.mean(dim=1, keepdim=True))",
        "normed - x.mean(dim=1, keepdim=True)",
        "normed - normed.mean(dim=1, keepdim=True) / 2",
        "normed / normed.std(dim=1, keepdim=True)",
    ],
)
def test_rows_that_depend_on_others_are_a_violation(tmp_path: Path, wrong: str) -> None:
    backend = adapted(tmp_path, "LayerNorm", CODE.replace(RIGHT, wrong))
    assert broken(backend, "layer_norm.formula")
