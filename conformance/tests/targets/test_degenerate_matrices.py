"""Code whose matrices begin as zeros or without numbers: its conventions are read all the same."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

FORMULA = "multi_head_attention.formula"
CODE = """
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model} columns cannot be divided among {n_heads} heads")
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)
        nn.init.zeros_(self.out.weight)

    def heads(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = map(self.heads, (self.query(query), self.key(key), self.value(value)))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
ZEROS = "nn.init.zeros_(self.out.weight)"
INITIALISED = [
    ZEROS,
    "self.out = nn.utils.skip_init(nn.Linear, d_model, d_model)",
    "nn.init.constant_(self.value.weight, float('nan'))",
    "nn.init.constant_(self.out.weight, 1e-30)",
    "nn.init.constant_(self.out.bias, 1e20)",
    "nn.init.constant_(self.out.bias, float('nan'))",
    "nn.init.constant_(self.query.weight, 1e20)",
]


@share(2)
@pytest.mark.parametrize("initialised", INITIALISED)
def test_mask_of_attention_without_numbers_is_read(tmp_path: Path, initialised: str) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", CODE.replace(ZEROS, initialised))
    assert broken(backend, FORMULA, "multi_head_attention.masked-keys-ignored") == []
    assert any("True blocks" in sentence for sentence in backend.understood)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("scores.masked_fill(mask,", "scores.masked_fill(mask.roll(1, -1),"),
        (" / math.sqrt(q.size(-1))", ""),
    ],
)
def test_mistakes_behind_a_matrix_of_zeros_are_detected(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert right in CODE
    backend = adapted(tmp_path, "MultiHeadAttention", CODE.replace(right, wrong))
    assert broken(backend, FORMULA)


LAYER = (
    CODE
    + """

class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        nn.init.zeros_(self.norm1.weight)

    def forward(self, x, mask=None):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, mask)
        return x + self.down(self.up(self.norm2(x)).relu())
"""
).replace(ZEROS, "")


def test_mask_behind_a_gain_of_zeros_is_read(tmp_path: Path) -> None:
    added = LAYER.replace('scores.masked_fill(mask, float("-inf"))', "scores + mask")
    for source, said in ((LAYER, "True blocks"), (added, "added to the scores")):
        backend = adapted(tmp_path, "EncoderLayer", source)
        assert any(said in sentence for sentence in backend.understood)
        assert broken(backend, "encoder.layer-formula", "encoder.reach-is-the-mask") == []
