"""Rotary positions of images: they are asked about, and no mistake on one axis is excused."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, head_dim, side=8):
        super().__init__()
        inverse = 100.0 ** -(torch.arange(0, head_dim, 4).double() / head_dim)
        place = torch.arange(side * side)
        row, column = (place // side).double(), (place % side).double()
        angles = torch.cat([row[:, None] * inverse, column[:, None] * inverse], dim=-1)
        self.register_buffer("cos", angles.cos().repeat_interleave(2, -1), persistent=False)
        self.register_buffer("sin", angles.sin().repeat_interleave(2, -1), persistent=False)

    def forward(self, x):
        length = x.shape[-2]
        turned = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
        return x * self.cos[:length] + turned * self.sin[:length]
"""
ONE_AXIS = edited(
    CODE,
    (
        "angles = torch.cat([row[:, None] * inverse, column[:, None] * inverse], dim=-1)",
        "inverse = 10000.0 ** -(torch.arange(0, head_dim, 2).double() / head_dim)\n"
        "        angles = place[:, None] * inverse",
    ),
)


@pytest.mark.parametrize("side", [4, 8, 30])
def test_positions_of_rows_and_columns_are_asked_about(tmp_path: Path, side: int) -> None:
    with pytest.raises(Unclear, match="do not grow evenly with the position"):
        adapted(tmp_path, "Rotary", edited(CODE, ("side=8", f"side={side}")))


def test_positions_on_one_axis_conform(tmp_path: Path) -> None:
    code = edited(ONE_AXIS, ("side=8", "side=400"))
    assert not broken(adapted(tmp_path, "Rotary", code), "rotary.formula")


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("place[:, None] * inverse", "(place[:, None] + 1) * inverse"),
        ("place[:, None] * inverse", "place[:, None] * inverse.flip(0)"),
        ("(-x[..., 1::2], x[..., ::2])", "(x[..., 1::2], x[..., ::2])"),
        ("x * self.cos[:length]", "x * self.cos[1 : length + 1]"),
    ],
)
def test_mistakes_on_one_axis_do_not_become_a_design(
    tmp_path: Path, right: str, wrong: str
) -> None:
    code = edited(ONE_AXIS, ("side=8", "side=400"), (right, wrong))
    found, asked = None, ""
    try:
        found = adapted(tmp_path, "Rotary", code)
    except Unclear as question:
        asked = str(question)
    assert "evenly" not in asked
    assert found is None or broken(found, "rotary.formula")
