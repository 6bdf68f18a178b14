"""Whole models that get the mask of one side, and make that of the other by an id in their code."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

CODE = """
import math

import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, width, longest=64):
        super().__init__()
        steps = torch.arange(longest, dtype=torch.float64)[:, None]
        angles = steps / 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
        table = torch.zeros(longest, width, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = angles.sin(), angles[:, : width // 2].cos()
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        return x + self.table[: x.size(1)].to(x.dtype)


class Translator(nn.Module):
    def __init__(self, src_vocab_size, tgt_vocab_size, d_model, num_heads, num_layers, d_ff):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.source = nn.Embedding(src_vocab_size, d_model, padding_idx=0)
        self.target = nn.Embedding(tgt_vocab_size, d_model, padding_idx=0)
        self.places = Positions(d_model)
        self.body = nn.Transformer(
            d_model, num_heads, num_layers, num_layers, d_ff, 0.0, batch_first=True
        )
        self.head = nn.Linear(d_model, tgt_vocab_size)

    def forward(self, src, src_valid_mask, tgt):
        length = tgt.size(1)
        later = torch.ones(length, length, dtype=torch.bool, device=tgt.device).triu(1)
        x = self.places(self.source(src) * self.scale)
        y = self.places(self.target(tgt) * self.scale)
        hidden = self.body(
            x,
            y,
            tgt_mask=later,
            src_key_padding_mask=~src_valid_mask,
            tgt_key_padding_mask=tgt == 0,
            memory_key_padding_mask=~src_valid_mask,
        )
        return self.head(hidden)
"""


@pytest.mark.proof
def test_id_in_the_code_is_the_padding_of_the_side_without_a_mask(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Translator", CODE)
    assert not any("padding" in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "model.formula", "model.pad-ids", "model.causality")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("tgt_key_padding_mask=tgt == 0", "tgt_key_padding_mask=tgt != 0"),
        ("memory_key_padding_mask=~src_valid_mask", "memory_key_padding_mask=None"),
        ("triu(1)", "triu(2)"),
    ],
    ids=["target", "memory", "causal"],
)
def test_mistakes_beside_an_id_in_the_code_are_detected(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "Translator", CODE, right, wrong, "model.formula")


@pytest.mark.proof
def test_padding_that_no_id_hides_is_assumed_at_the_end(tmp_path: Path) -> None:
    visible = CODE.replace("            tgt_key_padding_mask=tgt == 0,\n", "")
    backend = adapted(tmp_path, "Translator", visible)
    said = "assumed that padding of the target is at its end"
    assert any(said in one for one in backend.assumed)  # type: ignore[attr-defined]
