"""Encoders that call one layer at every depth, as ALBERT does: judged with one for each depth."""

from pathlib import Path
from typing import Any

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt import Unclear

SHARED = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.width = heads, hidden // heads
        self.q, self.k, self.v = (nn.Linear(hidden, hidden) for _ in range(3))
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x, mask):
        b, n, d = x.shape
        q, k, v = (
            one(x).view(b, n, self.heads, self.width).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        scores = q @ k.transpose(-2, -1) / self.width**0.5
        weights = scores.masked_fill(mask == 0, -1e9).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, d))


class AlbertLayer(nn.Module):
    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.attention = Attention(hidden, heads)
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.up, self.down = nn.Linear(hidden, intermediate), nn.Linear(intermediate, hidden)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))


class AlbertEncoder(nn.Module):
    def __init__(self, hidden_size, num_heads, num_layers):
        super().__init__()
        self.num_layers = num_layers
        self.layer = AlbertLayer(hidden_size, num_heads, 4 * hidden_size)

    def forward(self, x, mask):
        for _ in range(self.num_layers):
            x = self.layer(x, mask)
        return x


class Albert(nn.Module):
    def __init__(
        self,
        vocab_size,
        embedding_size,
        hidden_size,
        num_heads,
        num_layers,
        intermediate_size,
        max_len,
    ):
        super().__init__()
        self.words = nn.Embedding(vocab_size, embedding_size)
        self.places = nn.Embedding(max_len, embedding_size)
        self.norm = nn.LayerNorm(embedding_size)
        self.widen = nn.Linear(embedding_size, hidden_size)
        self.num_layers = num_layers
        self.layer = AlbertLayer(hidden_size, num_heads, intermediate_size)

    def forward(self, ids, attention_mask):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        x = self.widen(x)
        for _ in range(self.num_layers):
            x = self.layer(x, attention_mask[:, None, None])
        return x
"""
CLAUSES = ("encoder.formula", "encoder.depth-counts", "encoder.every-parameter-reached")
ASSUMED = "one layer for all depths, layer, is meant"


@pytest.mark.proof
@pytest.mark.parametrize("name", ["AlbertEncoder", "Albert"])
def test_one_layer_for_all_depths_is_judged_with_one_for_each(name: str, tmp_path: Path) -> None:
    backend: Any = adapted(tmp_path, name, SHARED)
    assert "encoder" in backend.components
    assert any(ASSUMED in one for one in backend.assumed)
    assert broken(backend, *CLAUSES) == []


def test_strict_reading_asks_about_one_layer_for_all_depths(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "AlbertEncoder", SHARED, strict=True)


@pytest.mark.proof
@pytest.mark.parametrize("name", ["AlbertEncoder", "Albert"])
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" / self.width**0.5", ""),
        ("softmax(-1)", "softmax(1)"),
        ("self.norm1(x + self.attention(x, mask))", "self.norm1(self.attention(x, mask))"),
        ("range(self.num_layers)", "range(self.num_layers - 1)"),
        ("range(self.num_layers)", "range(self.num_layers + 1)"),
    ],
    ids=["no scale", "softmax over heads", "no residual", "one call less", "one call more"],
)
def test_mistakes_in_one_layer_for_all_depths_are_no_pass(
    name: str, right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, name, SHARED, right, wrong, *CLAUSES)


@pytest.mark.proof
def test_written_adapter_of_one_layer_for_all_depths_holds_the_copies(tmp_path: Path) -> None:
    backend: Any = adapted(tmp_path, "Albert", SHARED)
    text = backend.written()
    assert "own_layers(" in text
    space: dict[str, Any] = {}
    exec(text, space)
    assert broken(space["backend"], *CLAUSES) == []
