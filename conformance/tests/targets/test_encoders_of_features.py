"""Encoders that map vectors of another width to that of their layers: the layers are judged."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

SOURCE = """
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, hidden):
        b, n, d = x.shape
        maps = self.q, self.k, self.v
        q, k, v = (one(x).view(b, n, self.heads, -1).transpose(1, 2) for one in maps)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads)
        scores = scores.masked_fill(hidden[:, None, None], float("-inf"))
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.attention = Attention(d_model, heads)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.net = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x, hidden):
        x = self.norm1(x + self.attention(x, hidden))
        return self.norm2(x + self.net(x))


class FrameEncoder(nn.Module):
    def __init__(self, feat_dim, d_model, heads, d_ff, n_layers, n_classes=10):
        super().__init__()
        self.proj = nn.Linear(feat_dim, d_model)
        self.layers = nn.ModuleList([Layer(d_model, heads, d_ff) for _ in range(n_layers)])
        self.head = nn.Linear(d_model, n_classes)

    def forward(self, x, lengths):
        hidden = torch.arange(x.size(1))[None] >= lengths[:, None]
        x = self.proj(x)
        for layer in self.layers:
            x = layer(x, hidden)
        return self.head(x.masked_fill(hidden[..., None], 0).sum(1) / lengths[:, None])
"""
CLAUSES = ("encoder.formula", "encoder.layers-in-sequence")


@pytest.mark.proof
def test_layers_behind_a_matrix_of_features_are_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "FrameEncoder", SOURCE)
    assert broken(backend, *CLAUSES) == []
    assert any("outside of its layers and their norm" in one for one in backend.assumed)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (">= lengths", "> lengths"),
        (">= lengths", "< lengths"),
        ("self.norm1(x + self.attention(x, hidden))", "self.norm1(self.attention(x, hidden))"),
        ("math.sqrt(d // self.heads)", "math.sqrt(d)"),
        ("x = layer(x, hidden)", "x = self.layers[0](x, hidden)"),
    ],
)
def test_mistakes_in_those_layers_are_found(right: str, wrong: str, tmp_path: Path) -> None:
    assert asked_or_broken(tmp_path, "FrameEncoder", SOURCE, right, wrong, *CLAUSES)


def test_matrix_behind_the_layers_is_asked_about(tmp_path: Path) -> None:
    behind = SOURCE.replace("        x = self.proj(x)\n", "").replace(
        "return self.head(", "return self.proj("
    )
    with pytest.raises(Unclear):
        adapted(tmp_path, "FrameEncoder", behind.replace("nn.Linear(d_model, n_classes)", "None"))


def test_layers_that_get_the_features_again_are_asked_about(tmp_path: Path) -> None:
    again = SOURCE.replace("x = self.proj(x)", "x = first = self.proj(x)")
    again = again.replace("layer(x, hidden)", "layer(x + first, hidden)")
    with pytest.raises(Unclear):
        adapted(tmp_path, "Encoder", again.replace("FrameEncoder", "Encoder"))


def test_part_whose_class_has_no_source_is_no_hindrance(tmp_path: Path) -> None:
    made = 'Norm = type("Norm", (nn.LayerNorm,), {})'
    source = edited(
        SOURCE,
        ("class Layer(", f"{made}\n\n\nclass Layer("),
        ("= nn.LayerNorm(d_model), nn.L", "= Norm(d_model), nn.L"),
    )
    assert not broken(adapted(tmp_path, "FrameEncoder", source), CLAUSES[0])
