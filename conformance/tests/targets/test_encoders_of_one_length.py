"""Encoders whose layers get another number of rows than a call has tokens, or one length alone."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

import attentest
from attentest.targets.adapt import Unclear

BODY = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, mask=None):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None].bool(), -1e9)
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dim, heads, inner):
        super().__init__()
        self.attn = Attention(dim, heads)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, inner), nn.ReLU(), nn.Linear(inner, dim))

    def forward(self, x, mask=None):
        x = self.norm1(x + self.attn(x, mask))
        return self.norm2(x + self.mlp(x))
"""
GRID = (
    BODY
    + """

class GridClassifier(nn.Module):
    def __init__(self, dim=64, heads=8, layers=4, inner=256):
        super().__init__()
        self.cells = nn.Embedding(12, dim)
        self.places = nn.Parameter(torch.randn(50, dim))
        self.first = nn.Parameter(torch.randn(1, 1, dim))
        self.blocks = nn.ModuleList(Block(dim, heads, inner) for _ in range(layers))
        self.head = nn.Linear(dim, 3)

    def forward(self, cells):
        x = self.cells(cells)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])
"""
)
WHOLE = (
    BODY
    + """

class Encoder(nn.Module):
    def __init__(self, vocab_size, max_len, dim, heads, layers, inner):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab_size, dim), nn.Embedding(max_len, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, inner) for _ in range(layers))

    def forward(self, ids, mask=None):
        x = self.tokens(ids) + self.places.weight
        for block in self.blocks:
            x = block(x, mask)
        return x
"""
)
CLASS = edited(
    WHOLE,
    ("nn.Embedding(max_len, dim)", "nn.Embedding(max_len + 1, dim)"),
    (
        "        self.blocks",
        "        self.first = nn.Parameter(torch.randn(1, 1, dim))\n        self.blocks",
    ),
    (
        "self.tokens(ids) + self.places.weight",
        "torch.cat([self.first.expand(len(ids), 1, -1), self.tokens(ids)], 1)"
        "\n        x = x + self.places.weight[: x.shape[1]]",
    ),
    ("ids, mask=None", "ids"),
    ("block(x, mask)", "block(x)"),
)
SERIES = edited(
    CLASS,
    ("vocab_size, ", "in_features, "),
    ("nn.Embedding(in_features, dim)", "nn.Linear(in_features, dim)"),
)
MASKED = edited(
    GRID,
    ("block(x)", "block(x, mask)"),
    (
        "        for block in",
        "        mask = nn.functional.pad(cells != 0, (1, 0), value=True)\n        for block in",
    ),
)


@pytest.mark.parametrize(
    ("name", "source"), [("GridClassifier", GRID), ("Encoder", SERIES)], ids=["ids", "vectors"]
)
def test_layers_that_get_a_row_of_a_class_besides_are_judged(
    name: str, source: str, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, name, source)
    said = f"not judged: what {name} does outside of its layers and their norm"
    assert said in backend.assumed  # type: ignore[attr-defined]
    assert not broken(backend, "encoder.formula")


@pytest.mark.proof
@pytest.mark.parametrize("source", [WHOLE, CLASS], ids=["whole table", "class"])
def test_encoders_with_tables_of_one_length_are_judged_with_their_embedding(
    source: str, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "Encoder", source)
    assert "assumed positional_encoding=learned" in "\n".join(backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "encoder.formula")
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    assert not broken(attentest.adapted(str(tmp_path / "written.py:backend")), "encoder.formula")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" / q.shape[-1] ** 0.5", ""),
        ("softmax(dim=-1)", "softmax(dim=-2)"),
        ("x + self.attn(x, mask)", "self.attn(x, mask)"),
        (".transpose(1, 2).flatten(2)", ".reshape(x.shape)"),
        ("for block in self.blocks", "for block in self.blocks[:1]"),
        ("            x = block(x)", "            x = block(x) + x"),
        ("Block(dim, heads, inner) for _ in", "self.one for _ in"),
    ],
    ids=["scale", "axis", "residual", "merge", "one layer", "twice", "shared"],
)
@pytest.mark.parametrize(("name", "source"), [("GridClassifier", GRID), ("Encoder", CLASS)])
def test_mistakes_behind_rows_of_a_class_are_found_or_asked_about(
    name: str, source: str, right: str, wrong: str, tmp_path: Path
) -> None:
    start = "        self.blocks ="
    held = source.replace(start, f"        self.one = Block(dim, heads, inner)\n{start}")
    text = held if "self.one" in wrong else source
    assert asked_or_broken(tmp_path, name, text, right, wrong, "encoder.formula")


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("+ self.places.weight\n", "+ 2 * self.places.weight\n"),
        ("+ self.places.weight\n", "+ self.places.weight.flip(0)\n"),
        ("self.tokens(ids) +", "0.5 * self.tokens(ids) +"),
    ],
    ids=["twice", "backwards", "halved"],
)
def test_mistakes_in_tables_of_one_length_are_a_question(
    right: str, wrong: str, tmp_path: Path
) -> None:
    with pytest.raises(Unclear, match="what the first of them gets is"):
        adapted(tmp_path, "Encoder", edited(WHOLE, (right, wrong)))


def test_masks_of_ids_of_one_length_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "GridClassifier", MASKED)


def test_layers_that_join_samples_of_one_length_are_a_question(tmp_path: Path) -> None:
    mixed = GRID.replace("x = block(x)\n", "x = block(x.transpose(0, 1)).transpose(0, 1)\n")
    with pytest.raises(Unclear):
        adapted(tmp_path, "GridClassifier", mixed)


CUT = edited(WHOLE, ("+ self.places.weight\n", "+ self.places.weight[: ids.shape[1]]\n"))


@share(2, rest=1)
@pytest.mark.parametrize("source", [WHOLE, CUT], ids=["whole table", "any length"])
def test_tables_of_positions_on_which_nothing_depends_are_a_question(
    source: str, tmp_path: Path
) -> None:
    rows = "self.places.weight" + "[: ids.shape[1]]" * (source is CUT)
    lost = edited(source, (f"self.tokens(ids) + {rows}", f"self.tokens(ids) + 0 * {rows}"))
    with pytest.raises(Unclear, match=r"no output depends on places\.weight"):
        adapted(tmp_path, "Encoder", lost)


SINES = """
        angles = torch.arange(40.0)[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
        self.places[:, 0::2], self.places[:, 1::2] = angles.sin(), angles.cos()[:, : dim // 2]
"""


@pytest.mark.proof
def test_table_of_one_length_that_is_no_buffer_is_read_by_the_length_that_a_call_names(
    tmp_path: Path,
) -> None:
    source = edited(
        WHOLE,
        ("nn.Embedding(max_len, dim)", "torch.zeros(40, dim)"),
        ("        self.blocks", f"{SINES}        self.blocks"),
        ("self.places.weight", "self.places"),
        ("ids, mask=None", "ids"),
        ("block(x, mask)", "block(x)"),
        ("vocab_size, max_len, ", "vocab_size, "),
    )
    backend = adapted(tmp_path, "Encoder", source)
    assert not broken(backend, "encoder.formula")
    wrong = edited(source, ("self.norm2(x + self.mlp(x))", "self.norm2(self.mlp(x))"))
    assert broken(adapted(tmp_path, "Encoder", wrong), "encoder.formula")
