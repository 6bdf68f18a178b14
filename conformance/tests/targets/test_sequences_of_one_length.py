"""Whole models that take sequences of their greatest length alone, as padding makes them."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken

import attentest
from attentest.targets.adapt import Unclear

OWN = (SUPPORT / "wild_models" / "one_pad.py").read_text(encoding="utf-8")
CODE = OWN.replace(".weight[: src.size(1)]", ".weight").replace(".weight[:t]", ".weight")
VISIBLE = ("x = block(x, narrow)", "x = block(x, torch.ones_like(narrow))")


@pytest.mark.proof
def test_models_of_one_length_are_filled_with_padding_and_conform(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Transformer", CODE)
    said = "assumed that sequences of the greatest length alone are meant"
    assert said in "\n".join(backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "model.formula", "model.causality", "model.parameter-gradient")
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    assert not broken(attentest.adapted(str(tmp_path / "written.py:backend")), "model.formula")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        VISIBLE,
        (" * past", ""),
        ("y = block(y, own, x, wide)", "y = block(y, own, x, torch.ones_like(wide))"),
        (" / s**0.5", ""),
    ],
    ids=["source", "causal", "memory", "scale"],
)
def test_mistakes_in_models_of_one_length_are_detected(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "Transformer", CODE, right, wrong, "model.formula")


def test_models_of_one_length_that_see_their_padding_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="sequences of its greatest length alone"):
        adapted(tmp_path, "Transformer", CODE.replace(*VISIBLE))


def test_models_of_one_length_are_a_question_under_strict(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="sequences of its greatest length alone"):
        adapted(tmp_path, "Transformer", CODE, strict=True)


PART = """
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, num_heads, sequence_length, hidden_size):
        super().__init__()
        self.heads, self.rows = num_heads, sequence_length
        width = hidden_size
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def split(self, x):
        return x.view(len(x), self.rows, self.heads, -1).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        weights = (q @ k.transpose(-2, -1) / q.size(-1) ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_parts_of_one_length_are_a_question_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(
        Unclear, match="takes sequences of its greatest length alone: a call with 5"
    ):
        adapted(tmp_path, "MultiHeadAttention", PART)
    right = PART.replace("self.rows, self.heads", "x.size(1), self.heads")
    assert not broken(
        adapted(tmp_path, "MultiHeadAttention", right), "multi_head_attention.formula"
    )
    wrong = right.replace(" / q.size(-1) ** 0.5", "")
    assert broken(adapted(tmp_path, "MultiHeadAttention", wrong), "multi_head_attention.formula")
