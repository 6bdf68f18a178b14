"""Encoders of tokens whose names of widths say another reading, or none: layers show them."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

from attentest.targets.adapt.encoders.sizes.widths import with_widths
from attentest.targets.adapt.reading import Reading

ENCODER = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, inner, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x, x, x)[0])
        return self.norm2(x + self.down(torch.relu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, vocab_size, feature_size=96, heads=4, layers=2, hidden_size=384):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, feature_size)
        self.positions = nn.Embedding(50, feature_size)
        self.layers = nn.ModuleList(
            Layer(feature_size, hidden_size, heads) for _ in range(layers)
        )

    def forward(self, ids):
        x = self.embedding(ids) + self.positions(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return x, torch.tanh(x[:, 0])
"""
CLAUSES = "encoder.formula", "encoder.depth-counts"


@pytest.mark.parametrize(
    "names",
    [
        (),
        (("feature_size", "wide"), ("hidden_size=384", "deep=384"), ("hidden_size", "deep")),
        (
            *(("feature_size=96", "feature_size"), ("hidden_size=384", "hidden_size")),
            *(("=4", ""), ("=2", "")),
        ),
    ],
)
def test_widths_whose_names_say_otherwise_are_those_of_the_layers(
    tmp_path: Path, names: tuple[tuple[str, str], ...]
) -> None:
    assert not broken(adapted(tmp_path, "Bert", edited(ENCODER, *names)), *CLAUSES)


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.norm2(x + self.down", "self.norm1(x + self.down"),
        ("x = self.norm1(x + self.attention(x, x, x)[0])", "x = self.norm1(self.up(x)[..., :1])"),
        ("torch.relu(self.up(x))", "self.up(x)"),
    ],
)
def test_mistakes_of_layers_are_no_widths(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "Bert", ENCODER, right, wrong, *CLAUSES)


def test_code_that_embeds_nothing_has_no_widths_to_try() -> None:
    class Network:
        def __init__(self, first: int, second: int) -> None:
            self.sizes = first, second

    assert not list(with_widths(Network, "encoder", Reading()))
