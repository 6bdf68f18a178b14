"""Encoders whose arguments have names that say nothing, masks that are needed, and pad ids."""

from pathlib import Path
from typing import Any

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

import attentest
from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, hidden):
        x = self.norm1(x + self.attention(x, x, x, key_padding_mask=hidden)[0])
        return self.norm2(x + self.down(torch.relu(self.up(x))))


class Tagger(nn.Module):
    def __init__(self, vocab_size, d_model, heads, d_ff, n_layers, max_len, tags):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.kinds = nn.Embedding(2, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.layers = nn.ModuleList(Layer(d_model, heads, d_ff) for _ in range(n_layers))
        self.out = nn.Linear(d_model, tags)

    def forward(self, ids, attention):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x, attention == 0)
        return self.out(x)
"""
NEEDED = edited(
    CODE,
    ("ids, attention)", "ids, attention_mask=None)"),
    ("attention == 0", "attention_mask[:, :] == 0"),
)
NUMBERED = edited(CODE, ("ids, attention)", "ids)"), ("attention == 0", "ids == 1"))
OF_KINDS = edited(
    CODE,
    ("ids, attention)", "ids, sides, attention)"),
    ("x = self.words(ids)", "x = self.kinds(sides) + self.words(ids)"),
)
OF_LABELS = edited(
    CODE,
    ("ids, attention)", "ids, y)"),
    ("attention == 0", "ids == 0"),
    (
        "return self.out(x)",
        "return nn.functional.cross_entropy(self.out(x).transpose(1, 2), y)",
    ),
)
CLAUSES = ("encoder.formula", "encoder.padding-invariance")
RIGHT = "self.norm1(x + self.attention("
WRONG = "self.norm1(self.attention("


@pytest.mark.proof
@pytest.mark.parametrize(
    ("code", "said"),
    [
        (CODE, "attention is a mask of padding"),
        (NEEDED, ""),
        (NUMBERED, "pad id of Tagger is always 1"),
        (OF_KINDS, "sides numbers segments"),
        (OF_LABELS, "y is used behind the layers alone"),
    ],
    ids=["mask", "needed mask", "pad id", "segments", "labels"],
)
def test_encoder_is_judged_with_arguments_as_calls_show_them(
    code: str, said: str, tmp_path: Path
) -> None:
    backend: Any = adapted(tmp_path, "Tagger", code)
    assert said in "\n".join(backend.assumed)
    assert "mask" in backend.summary
    assert broken(backend, *CLAUSES) == []
    assert asked_or_broken(tmp_path, "Tagger", code, RIGHT, WRONG, *CLAUSES)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("code", "right", "wrong"),
    [
        (CODE, "attention == 0", "attention == 1"),
        (CODE, "attention == 0", "None"),
        (NEEDED, "[:, :] == 0", "[:, :] == 1"),
        (NUMBERED, "ids == 1", "ids != 1"),
    ],
    ids=["turned round", "not used", "needed, turned round", "pad id, turned round"],
)
def test_masks_that_hide_the_wrong_tokens_are_no_pass(
    code: str, right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "Tagger", code, right, wrong, *CLAUSES)


def test_table_of_positions_that_is_not_used_is_a_question(tmp_path: Path) -> None:
    unused = edited(
        CODE,
        ("ids, attention)", "ids, attention_mask=None)"),
        ("attention == 0", "None if attention_mask is None else attention_mask == 0"),
        (" + self.places(torch.arange(ids.shape[1]))", ""),
    )
    with pytest.raises(Unclear, match="no output depends on places"):
        adapted(tmp_path, "Tagger", unused)


@pytest.mark.proof
def test_written_adapter_calls_by_the_names_of_the_code(tmp_path: Path) -> None:
    backend: Any = adapted(tmp_path, "Tagger", OF_KINDS)
    (tmp_path / "written.py").write_text(backend.written())
    assert broken(attentest.adapted(str(tmp_path / "written.py:backend")), *CLAUSES) == []


def test_strict_reading_asks_about_arguments_that_no_name_says(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "Tagger", CODE, strict=True)
