"""Attention in which every head gets its columns by one matrix, and code that is none."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

import attentest
from attentest.targets.adapt import Unclear

HEADS_LAST = """
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.part = heads, width // heads
        self.for_query = nn.Linear(self.part, self.part)
        self.for_key = nn.Linear(self.part, self.part)
        self.for_value = nn.Linear(self.part, self.part)
        self.out = nn.Linear(width, width)

    def forward(self, query, key, value, mask=None):
        b, n, m = query.shape[0], query.shape[1], key.shape[1]
        query = self.for_query(query.reshape(b, n, self.heads, self.part))
        key = self.for_key(key.reshape(b, m, self.heads, self.part))
        value = self.for_value(value.reshape(b, m, self.heads, self.part))
        scores = torch.einsum("bnhd,bmhd->bhnm", query, key) / self.part**0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e20)
        rows = torch.einsum("bhnm,bmhd->bnhd", scores.softmax(dim=-1), value)
        return self.out(rows.reshape(b, n, -1))
"""
HEADS_FIRST = edited(
    HEADS_LAST,
    ("n, self.heads, self.part))", "n, self.heads, self.part).transpose(1, 2))"),
    ("m, self.heads, self.part))", "m, self.heads, self.part).transpose(1, 2))"),
    ("bnhd,bmhd->bhnm", "bhnd,bhmd->bhnm"),
    ("bhnm,bmhd->bnhd", "bhnm,bhmd->bnhd"),
)
LAYER = (
    HEADS_LAST
    + """

class EncoderLayer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention = MultiHeadAttention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, x, x, mask))
        return self.norm2(x + self.network(x))


class Encoder(nn.Module):
    def __init__(self, vocab_size, width, layers, heads, inner):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, inner) for _ in range(layers))

    def forward(self, ids, mask):
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x, mask)
        return x
"""
)
ASSUMED = "assumed that one matrix for every head is meant (for_key, for_query, for_value)"


@pytest.mark.parametrize("source", [HEADS_LAST, HEADS_FIRST], ids=["heads last", "heads first"])
def test_attention_with_one_matrix_for_every_head_is_judged(source: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", source)
    assert ASSUMED in "\n".join(backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "multi_head_attention.formula", "multi_head_attention.gradient")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" / self.part**0.5", ""),
        (" / self.part**0.5", " / (self.part * self.heads) ** 0.5"),
        ("softmax(dim=-1)", "softmax(dim=-2)"),
        ("softmax(dim=-1)", "softmax(dim=1)"),
        ("->bnhd", "->bhnd"),
        ("self.for_value(value.reshape", "self.for_value(key.reshape"),
        ("self.for_key(key", "self.for_query(key"),
        (
            "m, self.heads, self.part))\n        value",
            "m, self.part, self.heads).mT)\n        value",
        ),
    ],
    ids=["scale", "width", "queries", "heads", "merge", "value", "key", "split"],
)
def test_mistakes_in_attention_with_one_matrix_for_every_head_are_found_or_asked_about(
    right: str, wrong: str, tmp_path: Path
) -> None:
    clauses = ("multi_head_attention.formula", "multi_head_attention.masked-keys-ignored")
    assert asked_or_broken(tmp_path, "MultiHeadAttention", HEADS_LAST, right, wrong, *clauses)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "clause"),
    [("EncoderLayer", "encoder.layer-formula"), ("Encoder", "encoder.formula")],
)
def test_layers_with_one_matrix_for_every_head_are_judged(
    name: str, clause: str, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, name, LAYER)
    assert ASSUMED in "\n".join(backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, clause)
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    assert not broken(attentest.adapted(str(tmp_path / "written.py:backend")), clause)


def test_one_matrix_for_every_head_is_a_question_under_strict(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="shared by all heads"):
        adapted(tmp_path, "MultiHeadAttention", HEADS_LAST, strict=True)


def test_matrices_of_a_head_that_get_no_axis_of_heads_are_a_question(tmp_path: Path) -> None:
    first = edited(
        HEADS_LAST,
        ("query.reshape(b, n, self.heads, self.part)", "query[..., : self.part]"),
        ("key.reshape(b, m, self.heads, self.part)", "key[..., : self.part]"),
        ("value.reshape(b, m, self.heads, self.part)", "value[..., : self.part]"),
        ("bnhd,bmhd->bhnm", "bnd,bmd->bnm"),
        ("bhnm,bmhd->bnhd", "bnm,bmd->bnd"),
        ("rows.reshape(b, n, -1)", "rows.repeat(1, 1, self.heads)"),
    )
    with pytest.raises(Unclear):
        adapted(tmp_path, "MultiHeadAttention", first)
