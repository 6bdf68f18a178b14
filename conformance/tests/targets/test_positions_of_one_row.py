"""Encoders whose table of positions has a fixed number of rows, and gives the same one to all."""

from pathlib import Path

import pytest
from mistaken_code import adapted, edited

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, vocab_size, d_model=32, heads=4, layers=2, d_ff=64, pad_id=0):
        super().__init__()
        self.pad_id = pad_id
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        self.positions, self.segments = nn.Embedding(512, d_model), nn.Embedding(2, d_model)
        layer = nn.TransformerEncoderLayer(d_model, heads, d_ff, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)

    def forward(self, ids):
        x = self.embedding(ids) + self.positions(torch.arange(ids.shape[1]))
        x = x + self.segments(torch.zeros_like(ids))
        return self.encoder(x, src_key_padding_mask=ids == self.pad_id)
"""


def test_one_row_for_all_positions_is_asked_about(tmp_path: Path) -> None:
    wrong = edited(CODE, ("torch.arange(ids.shape[1])", "torch.zeros_like(ids)"))
    with pytest.raises(Unclear, match=r"one row of positions\.weight for all positions"):
        adapted(tmp_path, "Encoder", wrong)


def test_one_row_of_segments_is_no_mistake(tmp_path: Path) -> None:
    found = adapted(tmp_path, "Encoder", CODE)
    assert "positional_encoding=learned" in " ".join(found.assumed)
