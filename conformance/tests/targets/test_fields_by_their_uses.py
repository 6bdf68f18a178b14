"""Decoder-only models whose fields and factors have names of their own."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.whole import AdaptedWhole

CODE = """
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Sizes:
    voices: int
    num_embeddings: int
    vocab_size: int
    ticks: int
    floors: int
    hs_scale_factor: int


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width, self.voices = sizes.num_embeddings, sizes.voices
        self.pairs, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ln = nn.LayerNorm(width)
        self.up = nn.Linear(width, sizes.hs_scale_factor * width)
        self.down = nn.Linear(sizes.hs_scale_factor * width, width)
        self.attention = nn.MultiheadAttention(sizes.num_embeddings, sizes.voices, bias=False)
        del self.attention

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.pairs(self.ln(x)).view(b, t, 3, self.voices, -1).unbind(2)
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        later = torch.full((t, t), float("-inf")).triu(1)
        scores = q @ k.mT * q.shape[-1] ** -0.5 + later
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
        return x + self.down(torch.relu(self.up(self.ln(x))))


class GPT(nn.Module):
    def __init__(self, sizes: Sizes):
        super().__init__()
        self.sizes = sizes
        self.words = nn.Embedding(sizes.vocab_size, sizes.num_embeddings)
        self.position_table = nn.Embedding(sizes.ticks, sizes.num_embeddings)
        self.blocks = nn.ModuleList([Block(sizes) for _ in range(sizes.floors)])
        self.final = nn.LayerNorm(sizes.num_embeddings)
        self.head = nn.Linear(sizes.num_embeddings, sizes.vocab_size)

    def forward(self, ids):
        x = self.words(ids) + self.position_table(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.final(x))
"""
OWN = edited(
    CODE,
    (
        "self.ln = nn.LayerNorm(width)",
        "self.ln, self.mid = nn.LayerNorm(width), nn.LayerNorm(width)",
    ),
    ("self.up(self.ln(x))", "self.up(self.mid(x))"),
)
CLAUSES = ("language_model.formula", "language_model.gradient")


@pytest.mark.proof
def test_fields_are_what_the_model_makes_of_them(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", OWN)
    assert isinstance(backend, AdaptedWhole)
    built = backend.adapter.building.expression
    assert "num_embeddings=sizes.d_model" in built
    assert "ticks=sizes.max_length" in built
    assert "hs_scale_factor=4" in built
    assert broken(backend, *CLAUSES) == []


@pytest.mark.proof
def test_one_norm_of_each_layer_is_judged_as_one_for_each_sublayer(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", CODE)
    assert isinstance(backend, AdaptedWhole)
    assert [one for one in backend.assumed if "one norm for all sublayers" in one]
    assert broken(backend, *CLAUSES) == []
    assert "class InTurn" in backend.adapter.text()


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("triu(1)", "triu(2)"),
        ("self.up(self.ln(x))", "self.up(x)"),
        ("q.shape[-1] ** -0.5", "c ** -0.5"),
        ("return x + self.down", "return self.down"),
    ],
)
def test_mistake_next_to_a_shared_norm_is_no_pass(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "GPT", CODE, right, wrong, CLAUSES[0])


@pytest.mark.proof
def test_norm_of_attention_in_the_place_of_another_is_no_shared_one(tmp_path: Path) -> None:
    assert asked_or_broken(
        tmp_path, "GPT", OWN, "self.up(self.mid(x))", "self.up(self.ln(x))", CLAUSES[0]
    )
