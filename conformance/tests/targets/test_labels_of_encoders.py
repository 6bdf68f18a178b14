"""Encoders of tokens that are called with labels: their call fails without, behind the layers."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

SOURCE = """
import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, x, x, key_padding_mask=mask)[0])
        return self.norm2(x + self.down(torch.relu(self.up(x))))


class MaskedBert(nn.Module):
    def __init__(self, vocab_size, width, heads, layers, pad_token_id=0):
        super().__init__()
        self.pad = pad_token_id
        self.embedding = nn.Embedding(vocab_size, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, vocab_size)

    def forward(self, input_ids, labels=None):
        x = self.embedding(input_ids)
        for layer in self.layers:
            x = layer(x, input_ids == self.pad)
        logits = self.head(x)
        if labels is not None:
            return {"loss": F.cross_entropy(logits.flatten(0, 1), labels.flatten()), "x": logits}
        place = (input_ids == 5).flatten().nonzero().item()
        return {"guess": logits[:, place].argmax(-1)}
"""
CLAUSES = "encoder.formula", "encoder.padding-invariance"


@pytest.mark.proof
@pytest.mark.parametrize("name", ["labels=None", "targets=None"])
def test_calls_that_fail_without_labels_get_some(tmp_path: Path, name: str) -> None:
    source = SOURCE.replace("labels", name.removesuffix("=None"))
    assert not broken(adapted(tmp_path, "MaskedBert", source), *CLAUSES)


def test_labels_that_a_call_needs_are_given(tmp_path: Path) -> None:
    source = edited(SOURCE, ("labels=None", "labels"))
    assert not broken(adapted(tmp_path, "MaskedBert", source), *CLAUSES)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("input_ids == self.pad", "input_ids != self.pad"),
        ("x = self.norm1(x + self", "x = self.norm1(self"),
        ("self.norm2(x + ", "self.norm1(x + "),
    ],
)
def test_mistakes_are_found_with_labels(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "MaskedBert", SOURCE, right, wrong, *CLAUSES)
