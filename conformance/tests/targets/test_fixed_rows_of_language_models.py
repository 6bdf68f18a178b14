"""Decoder-only models whose trained tables of positions have a fixed number of rows."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

import attentest
from attentest.targets.adapt import Unclear

SOURCE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, t, d = x.shape
        heads = self.qkv(x).view(b, t, 3, self.n_heads, d // self.n_heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (d // self.n_heads) ** 0.5
        later = torch.ones(t, t, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.attention = Attention(d_model, n_heads)
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.up, self.down = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.down(torch.relu(self.up(self.second(x))))


class LanguageModel(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(48, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""
FORMULA = "language_model.formula"
PARAMETER = [
    ("nn.Embedding(48, d_model)", "nn.Parameter(torch.zeros(1, 48, d_model))"),
    ("self.places(torch.arange(ids.shape[1]))", "self.places[:, : ids.shape[1]]"),
]
SETTINGS = [
    ("vocab_size, d_model, n_heads, n_layers", "vocab_size, d_model, n_heads, n_layers, span=48"),
    ("Embedding(48", "Embedding(span"),
]


def edited(*edits: tuple[str, str]) -> str:
    source = SOURCE
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    return source


@pytest.mark.proof
@share(3, rest=1)
@pytest.mark.parametrize("edits", [(), PARAMETER, SETTINGS], ids=["table", "parameter", "default"])
def test_fixed_rows_are_a_greatest_length(edits: list[tuple[str, str]], tmp_path: Path) -> None:
    backend = adapted(tmp_path, "LanguageModel", edited(*edits))
    assert "assumed that the 48 rows of places" in "\n".join(backend.assumed)
    assert backend.limits.length == 48
    assert not broken(backend, FORMULA)


@pytest.mark.proof
def test_written_adapter_of_fixed_rows_conforms(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "LanguageModel", SOURCE)
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    assert not broken(attentest.adapted(str(tmp_path / "written.py:backend")), FORMULA)


@pytest.mark.proof
def test_mistakes_in_models_of_fixed_rows_are_no_pass(tmp_path: Path) -> None:
    scale = " / (d // self.n_heads) ** 0.5"
    assert asked_or_broken(tmp_path, "LanguageModel", SOURCE, scale, "", FORMULA)


@pytest.mark.proof
def test_rows_that_are_no_positions_keep_their_number(tmp_path: Path) -> None:
    prefix = "x = torch.cat([self.places.weight.expand(len(ids), -1, -1), self.tokens(ids)], 1)"
    source = edited(
        ("x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))", prefix),
        ("self.head(self.norm(x))", "self.head(self.norm(x[:, 48:]))"),
    )
    with pytest.raises(Unclear, match="queries"):
        adapted(tmp_path, "LanguageModel", source)
