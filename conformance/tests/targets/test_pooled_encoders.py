"""Encoders that make one row of a text without a head: what they make of it is said."""

from pathlib import Path

import pytest
from mistaken_code import adapted, edited
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn
from torch.nn import functional


class Encoder(nn.Module):
    def __init__(self, vocab_size, d_model=32, heads=4, layers=2, d_ff=64, max_len=64, pad_id=0):
        super().__init__()
        self.pad_id = pad_id
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        self.position = nn.Embedding(max_len, d_model)
        layer = nn.TransformerEncoderLayer(d_model, heads, d_ff, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)

    def forward(self, ids):
        pad = ids == self.pad_id
        x = self.embedding(ids) + self.position(torch.arange(ids.shape[1]))
        x = self.encoder(x, src_key_padding_mask=pad)
        return x[:, 0]
"""
MEASURED = {
    "embedding_scale": "none",
    "positional_encoding": "learned",
    "projection_bias": "present",
}
MEAN = "x.masked_fill(pad[..., None], 0).sum(1) / (~pad).sum(1, keepdim=True)"


def sentence(folder: Path, output: str, **reading: object) -> str:
    """Return what is assumed about the `output` of the class."""
    found = adapted(folder, "Encoder", edited(CODE, ("x[:, 0]", output)), **reading)
    return "; ".join(one for one in found.assumed if "makes of the output" in one)


@pytest.mark.parametrize("output", ["x[:, 0]", MEAN, f"functional.normalize({MEAN}, dim=-1)"])
def test_row_of_a_text_is_said_not_to_be_judged(tmp_path: Path, output: str) -> None:
    found = sentence(tmp_path, output)
    assert found == "not judged: what Encoder makes of the output of its layers"


@share(2, rest=1)
@pytest.mark.parametrize("output", ["x.mean(1)", "x.max(1).values", "x[:, -1]"])
def test_row_that_padding_changes_is_named(tmp_path: Path, output: str) -> None:
    assert "changes with padding" in sentence(tmp_path, output)
    with pytest.raises(Unclear, match="changes with padding"):
        sentence(tmp_path, output, strict=True, choices=MEASURED)


@pytest.mark.parametrize("output", ["x", "x.transpose(0, 1)"])
def test_nothing_is_said_of_a_row_for_each_token(tmp_path: Path, output: str) -> None:
    assert sentence(tmp_path, output) == ""
