"""Layers that hold the norm of a part which is off: the norms that are called are judged."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

LAYER = """
import torch
from torch import nn


class TransformerBlock(nn.Module):
    def __init__(self, hidden_size, mlp_dim, num_heads, dropout=0.0, with_cross=False):
        super().__init__()
        self.norm1 = nn.LayerNorm(hidden_size)
        self.attn = nn.MultiheadAttention(hidden_size, num_heads, dropout, batch_first=True)
        self.norm2 = nn.LayerNorm(hidden_size)
        self.norm_cross = nn.LayerNorm(hidden_size)
        self.with_cross = with_cross
        self.mlp = nn.Sequential(
            nn.Linear(hidden_size, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, hidden_size)
        )

    def forward(self, x, context=None):
        normed = self.norm1(x)
        x = x + self.attn(normed, normed, normed, need_weights=False)[0]
        if self.with_cross:
            x = x + self.attn(self.norm_cross(x), context, context)[0]
        return x + self.mlp(self.norm2(x))
"""


def test_norm_of_a_part_that_is_off_is_left_over(tmp_path):
    backend = adapted(tmp_path, "TransformerBlock", LAYER)
    assert not broken(backend, "encoder.layer-formula", "encoder.separate-norms")
    said = " ".join(backend.understood)
    assert "Left over, and kept as initialised: norm_cross.weight, norm_cross.bias" in said


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.mlp(self.norm2(x))", "self.mlp(self.norm_cross(self.norm2(x)))"),
        ("x + self.mlp(self.norm2(x))", "normed + self.mlp(self.norm2(x))"),
        ("normed = self.norm1(x)", "normed = x"),
    ],
)
def test_mistakes_in_such_a_layer_are_detected_or_asked_about(tmp_path, old, new):
    clause = "encoder.layer-formula"
    assert asked_or_broken(tmp_path, "TransformerBlock", LAYER, old, new, clause)
