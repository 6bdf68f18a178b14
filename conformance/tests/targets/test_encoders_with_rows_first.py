"""Encoders with rows first, one pad id for several tables, masks for each head, and other names."""

from pathlib import Path
from typing import Any

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, vocab_size, d_model, heads, d_ff, n_layers, max_len, n_kinds=2, pad_idx=0):
        super().__init__()
        self.heads, self.pad = heads, pad_idx
        self.words = nn.Embedding(vocab_size, d_model, padding_idx=pad_idx)
        self.places = nn.Embedding(max_len, d_model)
        self.kinds = nn.Embedding(n_kinds, d_model, padding_idx=pad_idx)
        self.norm = nn.LayerNorm(d_model)
        layer = nn.TransformerEncoderLayer(d_model, heads, d_ff)
        self.encoder = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.out = nn.Linear(d_model, 4)

    def forward(self, ids, segment_ids):
        x = self.words(ids) + self.kinds(segment_ids)
        x = self.norm(x + self.places(torch.arange(ids.shape[1])))
        x = self.encoder(x.transpose(0, 1), src_key_padding_mask=ids == self.pad)
        return self.out(x.transpose(0, 1))
"""
GPT = edited(
    CODE,
    ("class Model", "class TinyGPT"),
    ("ids, segment_ids)", "ids)"),
    ("self.kinds(segment_ids)", "self.kinds(ids * 0)"),
    ("self.out(x.transpose(0, 1))", "self.out(x[0])"),
)
MIXED = edited(
    CODE,
    (
        "class Model",
        """class Layers(nn.Module):
    def __init__(self, d_model, heads, d_ff, n_layers):
        super().__init__()
        layer = nn.TransformerEncoderLayer(d_model, heads, d_ff, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)

    def forward(self, x, mask):
        return self.layers(x, mask=mask)


class Model""",
    ),
    ("        layer = nn.TransformerEncoderLayer(d_model, heads, d_ff)\n", ""),
    (
        "nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)\n        self.out",
        "Layers(d_model, heads, d_ff, n_layers)\n        self.out",
    ),
    (
        "self.encoder(x.transpose(0, 1), src_key_padding_mask=ids == self.pad)",
        "self.encoder(x, (ids != self.pad)[:, None].repeat(self.heads, ids.shape[1], 1))",
    ),
    ("self.out(x.transpose(0, 1))", "self.out(x)"),
)
LAYER = """
import torch
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = x + torch.sin(torch.arange(x.shape[1])[:, None] + torch.arange(x.shape[2]) / 7)
        x = self.norm1(x + self.attention(x, x, x)[0])
        return self.norm2(x + self.down(torch.relu(self.up(x))))
"""
CLAUSES = ("encoder.formula", "encoder.padding-invariance")


@pytest.mark.proof
def test_input_of_layers_with_rows_first_is_read_behind_a_norm(tmp_path: Path) -> None:
    backend: Any = adapted(tmp_path, "Model", CODE)
    said = "\n".join(backend.understood)
    assert "positional_encoding=learned, embedding_norm=present" in said
    assert "the pad id is 0" in said
    assert broken(backend, *CLAUSES) == []
    wrong = "self.places(torch.arange(ids.shape[1]) * 0)"
    right = "self.places(torch.arange(ids.shape[1]))"
    assert asked_or_broken(tmp_path, "Model", CODE, right, wrong, *CLAUSES)


@pytest.mark.proof
def test_inverted_masks_of_heads_that_mix_the_samples_are_no_pass(tmp_path: Path) -> None:
    right, wrong = "ids != self.pad", "ids > 0"
    assert asked_or_broken(tmp_path, "Model", MIXED, right, wrong, *CLAUSES)


@pytest.mark.proof
def test_classifier_with_the_name_of_a_language_model_is_an_encoder(tmp_path: Path) -> None:
    backend: Any = adapted(tmp_path, "TinyGPT", GPT)
    assert backend.code.component == "encoder"
    assert broken(backend, *CLAUSES) == []
    words = edited(GPT, ("nn.Linear(d_model, 4)", "nn.Linear(d_model, vocab_size)"))
    with pytest.raises(Unclear):
        adapted(tmp_path, "TinyGPT", words)


def test_layer_that_adds_positions_to_its_input_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="it adds positions to its input"):
        adapted(tmp_path, "EncoderLayer", LAYER)
