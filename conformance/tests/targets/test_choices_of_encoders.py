"""Whole models with a mistake behind their encoder: the encoder shows the choices of both."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

CODE = """
import torch
from torch import nn


class Translator(nn.Module):
    def __init__(self, vocab_size, width, heads, layers, inner, max_len=64):
        super().__init__()
        self.words = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(max_len, width)
        self.stacks = nn.Transformer(
            width, heads, layers, layers, inner, batch_first=True, norm_first=True,
            activation="gelu",
        )
        self.head = nn.Linear(width, vocab_size)

    def embedded(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))

    def encode(self, src):
        return self.stacks.encoder(self.embedded(src), src_key_padding_mask=src == 0)

    def decode(self, tgt, memory, src):
        y, later = self.embedded(tgt), torch.ones(2 * tgt.shape[1:]).triu(1).bool()
        for layer in self.stacks.decoder.layers:
            y = layer(
                y, memory, tgt_mask=later, tgt_key_padding_mask=tgt == 0,
                memory_key_padding_mask=src == 0,
            )
        return self.head(self.stacks.decoder.norm(y))

    def forward(self, src, tgt):
        return self.decode(tgt, self.encode(src), src)
"""
MISTAKES = [
    ("self.stacks.decoder.norm(y)", "y"),
    ("y, memory, tgt_mask", "y, memory.flip(-1), tgt_mask"),
]


@pytest.mark.proof
def test_the_sound_model_conforms(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "Translator", CODE), "model.formula") == []


@pytest.mark.proof
@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_choices_are_those_of_the_encoder(right: str, wrong: str, tmp_path: Path) -> None:
    mistaken = CODE.replace(right, wrong)
    assert mistaken != CODE
    backend = adapted(tmp_path, "Translator", mistaken)
    shown = [backend.choices[one] for one in ("norm_placement", "activation", "embedding_scale")]
    assert shown == ["pre", "gelu", "none"]
    assert broken(backend, "model.formula")
    sides = ["model.encode-decode-is-forward", "model.shapes"]
    assert broken(backend, *sides) == []


@pytest.mark.proof
def test_a_mistake_in_the_encoder_is_still_one(tmp_path: Path) -> None:
    mistaken = CODE.replace("self.embedded(src), src", "3 * self.embedded(src), src")
    assert mistaken != CODE
    assert broken(adapted(tmp_path, "Translator", mistaken), "model.formula")
