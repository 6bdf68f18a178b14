"""A mask that is turned around where torch is given it: the first screen says just that."""

from pathlib import Path

import pytest

import attentest

CODE = """
import torch
from torch import nn


class TextEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, dim_feedforward, num_layers, pad_idx=0):
        super().__init__()
        self.pad_idx = pad_idx
        self.embed = nn.Embedding(vocab_size, d_model, padding_idx=pad_idx)
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)

    def forward(self, tokens):
        mask = tokens == self.pad_idx
        x = self.embed(tokens)
        return self.encoder(x, src_key_padding_mask=~mask)
"""


@pytest.mark.proof
def test_mask_that_is_turned_around_is_named_so(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(CODE)
    first = attentest.check(f"{file}:TextEncoder").causes[0]
    assert first.line == 1 + CODE[: CODE.index("~mask")].count("\n")
    words = "the mask turned around, True for False; expected the mask as it was before"
    assert first.words == words
