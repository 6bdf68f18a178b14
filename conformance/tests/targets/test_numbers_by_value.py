"""Encoders of tokens whose code repeats the numbers of their sizes: each is one size."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

WRITTEN_OUT = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 96)
        self.places = nn.Parameter(torch.zeros(1, 50, 96))
        layer = nn.TransformerEncoderLayer(96, 8, 384, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=3)
        self.norm = nn.LayerNorm(96)
        self.head = nn.Linear(96, 2)

    def forward(self, ids):
        x = self.embedding(ids) + self.places[:, : ids.size(1)]
        return self.head(self.norm(self.encoder(x)).mean(1))
"""
REPEATED = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x, x, x)[0])
        return self.norm2(x + self.down(torch.relu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self, vocab_size, num_classes, d_model=512, heads=8, layers=6):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(Block(d_model, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(512)
        self.head = nn.Linear(512, num_classes)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])
"""
CLAUSES = "encoder.formula", "encoder.depth-counts", "encoder.final-norm"


@pytest.mark.parametrize(
    "edits",
    [
        (),
        (("(96, 8, 384, batch", "(d_model=96, nhead=8, dim_feedforward=384, batch"),),
        (("self.norm(self.encoder(x))", "self.encoder(x)"), ("        self.norm = nn.La", "#")),
        (
            ("nn.Parameter(torch.zeros(1, 50, 96))", "nn.Embedding(50, 96)"),
            ("self.places[:, : ids.size(1)]", "self.places(torch.arange(ids.size(1)))"),
        ),
    ],
)
def test_sizes_that_are_written_out_are_judged_at_others(
    tmp_path: Path, edits: tuple[tuple[str, str], ...]
) -> None:
    assert not broken(adapted(tmp_path, "Net", edited(WRITTEN_OUT, *edits)), *CLAUSES)


@pytest.mark.proof
def test_a_width_that_code_repeats_is_the_width(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Encoder", REPEATED)
    assert not broken(backend, *CLAUSES)
    assert any("number_512" in one for one in backend.assumed)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.norm(self.encoder(x))", "self.encoder(x)"),
        ("+ self.places", "+ 2 * self.places"),
        ("batch_first=True", "batch_first=False"),
    ],
)
def test_mistakes_around_written_sizes_are_no_sizes(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "Net", WRITTEN_OUT, right, wrong, *CLAUSES)


@pytest.mark.proof
def test_a_mistake_of_blocks_around_a_repeated_width_is_found(tmp_path: Path) -> None:
    right, wrong = "self.norm2(x + self.down", "self.norm2(self.down"
    assert asked_or_broken(tmp_path, "Encoder", REPEATED, right, wrong, *CLAUSES)
