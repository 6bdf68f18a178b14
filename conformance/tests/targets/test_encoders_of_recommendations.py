"""Encoders of the ids of items, with rows for padding and a mask, and one of a fixed length."""

from pathlib import Path
from typing import Any

import pytest
from mistaken_code import adapted, asked, asked_or_broken, broken, edited

import attentest
from attentest.targets.members import members

CODE = """
import torch
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, x, x, key_padding_mask=mask)[0])
        return self.norm2(x + self.down(torch.relu(self.up(x))))


class BERT(nn.Module):
    def __init__(self, args):
        super().__init__()
        torch.manual_seed(args.model_init_seed)
        width, length = args.bert_hidden_units, args.bert_max_len
        self.items = nn.Embedding(args.num_items + 2, width, padding_idx=0)
        self.places = nn.Embedding(length, width)
        made = range(args.bert_num_blocks)
        self.layers = nn.ModuleList(
            EncoderLayer(width, args.bert_num_heads, 4 * width) for _ in made
        )

    def forward(self, x):
        mask = x == 0
        x = self.items(x) + self.places.weight[: x.shape[1]]
        for layer in self.layers:
            x = layer(x, mask)
        return x
"""
FIXED = CODE.replace("self.places.weight[: x.shape[1]]", "self.places.weight")
CLAUSES = ("encoder.formula", "encoder.padding-invariance")


@pytest.mark.proof
def test_encoder_of_items_is_judged_with_the_rows_that_it_adds(tmp_path: Path) -> None:
    backend: Any = adapted(tmp_path, "BERT", CODE)
    assert "num_items=source_vocabulary" in "\n".join(backend.understood)
    assert broken(backend, *CLAUSES) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.norm1(x + self.attention(", "self.norm1(self.attention("),
        ("key_padding_mask=mask", "key_padding_mask=~mask"),
    ],
    ids=["no residual", "mask turned round"],
)
def test_mistakes_in_an_encoder_of_items_are_no_pass(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "BERT", CODE, right, wrong, *CLAUSES)


@pytest.mark.proof
def test_encoder_of_a_fixed_length_is_judged_with_padding_at_the_end(tmp_path: Path) -> None:
    backend: Any = adapted(tmp_path, "BERT", FIXED)
    assert "sequences of its greatest length alone" in "\n".join(backend.assumed)
    assert broken(backend, *CLAUSES) == []
    (tmp_path / "written.py").write_text(backend.written())
    assert broken(attentest.adapted(str(tmp_path / "written.py:backend")), *CLAUSES) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.norm1(x + self.attention(", "self.norm1(self.attention("),
        ("x = layer(x, mask)", "x = self.layers[0](x, mask)"),
        ("self.norm2(x + self.down", "self.norm1(x + self.down"),
    ],
    ids=["no residual", "one layer", "other norm"],
)
def test_mistakes_in_an_encoder_of_a_fixed_length_are_no_pass(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "BERT", FIXED, right, wrong, *CLAUSES)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("mask = x == 0", "mask = x != 0"),
        ("mask = x == 0", "mask = x == 1"),
    ],
    ids=["turned round", "another id"],
)
def test_wrong_masks_of_a_fixed_length_are_a_question_that_says_so(
    right: str, wrong: str, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(edited(FIXED, (right, wrong)))
    target = str(tmp_path / "own.py")
    assert {one.name: one.component for one in members(target) or ()}["BERT"] == "encoder"
    assert "sequences of its greatest length alone" in asked(f"{target}:BERT")
