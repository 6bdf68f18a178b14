"""Encoders whose call gives its masks other values, made of the ids, before it reads them."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

CODE = """
import torch
from torch import nn


class Places(nn.Module):
    def __init__(self, d_model, max_len=500):
        super().__init__()
        angles = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
        self.register_buffer("table", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))

    def forward(self, x):
        return x + self.table[: x.size(1)]


class Reviews(nn.Module):
    def __init__(self, vocab_size, d_model=64, nhead=4, n_layers=2, d_ff=128, classes=2):
        super().__init__()
        self.rows, self.places = nn.Embedding(vocab_size, d_model), Places(d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, d_ff, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, n_layers, nn.LayerNorm(d_model), False)
        self.head = nn.Linear(d_model, classes)

    def forward(self, src, src_mask=None, src_key_padding_mask=None):
        length = src.size(1)
        src_mask = torch.zeros((length, length)).type(torch.bool)
        src_key_padding_mask = src == 0
        x = self.places(self.rows(src))
        x = self.encoder(x, mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return self.head(x[:, 0])
"""
CLAUSES = (
    *("encoder.formula", "encoder.padding-invariance", "embedding.scale"),
    *("positional_encoding.formula",),
)


def test_masks_that_a_call_replaces_by_those_of_its_ids_are_no_masks_of_it(tmp_path):
    backend = adapted(tmp_path, "Reviews", CODE)
    assert any("gives it another value before it reads it" in one for one in backend.assumed)
    assert broken(backend, *CLAUSES) == []


@share(2, rest=1)
@pytest.mark.parametrize(
    "edit",
    [
        ("src_key_padding_mask = src == 0", "src_key_padding_mask = None"),
        ("src_key_padding_mask = src == 0", "src_key_padding_mask = src != 0"),
        ("src_key_padding_mask = src == 0", "src_key_padding_mask = torch.zeros_like(src).bool()"),
        ("self.table[: x.size(1)]", "self.table[: x.size(0), None]"),
    ],
)
def test_mistakes_of_replaced_masks_are_not_excused(tmp_path, edit):
    assert asked_or_broken(tmp_path, "Reviews", CODE, *edit, *CLAUSES)


def test_mask_that_is_read_before_it_is_replaced_stays_one(tmp_path):
    read = "src_mask = torch.zeros((length, length)).type(torch.bool)"
    source = edited(CODE, (f"        {read}\n", ""))
    source = edited(source, ("src_key_padding_mask = src == 0", "src_mask = src_mask"))
    backend = adapted(tmp_path, "Reviews", source)
    assert not any("gives it another value" in one for one in backend.assumed)
