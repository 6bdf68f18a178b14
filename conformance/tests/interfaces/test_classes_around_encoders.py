"""Classes around an encoder of tokens of their file, which could not be built or called."""

from pathlib import Path

import pytest
from mistaken_code import edited

import attentest

CODE = """
import torch
from torch import nn


class TextEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, d_ff, n_layers, max_len):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        layer = nn.TransformerEncoderLayer(d_model, heads, d_ff, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.encoder(x, src_key_padding_mask=ids == 0)


class PairModel(nn.Module):
    def __init__(self, encoder: TextEncoder, measure):
        super().__init__()
        self.encoder = encoder
        self.out = measure(10)

    def forward(self, first, second):
        return self.out(self.encoder(first), self.encoder(second))
"""
OWN_LAYERS = edited(
    CODE,
    (
        "self.out = measure(10)",
        "self.out = nn.TransformerEncoderLayer(measure(10), 4)",
    ),
)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("code", "conforms"), [(CODE, True), (OWN_LAYERS, False)], ids=["heads", "layers of its own"]
)
def test_class_around_an_encoder_is_no_question_where_that_is_judged(
    code: str, conforms: bool, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(code)
    found = attentest.check(str(tmp_path / "own.py"))
    assert found.conforms is conforms
    assert ("not judged: what it makes of TextEncoder" in str(found)) is conforms
