"""Recurrent networks in the file of a Transformer: they are no component of it."""

from pathlib import Path

import pytest

from attentest.targets.members import members
from attentest.targets.models.size_names import sizes_named

SOURCE = """
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self, vectors, embedding_dim, hidden_dim, n_layers, dropout):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(vectors)
        self.recurrent = nn.{kind}(embedding_dim, hidden_dim, n_layers, dropout=dropout)
    def forward(self, source):
        return self.recurrent(self.embedding(source))

class BaselineTransformer(nn.Module):
    def __init__(self, vocab_size, d_model, num_layers):
        super().__init__()
        self.encoder = nn.{kind}(d_model, d_model, num_layers)
        self.decoder = nn.{kind}(d_model, d_model, num_layers)
    def forward(self, src, tgt):
        return self.decoder(tgt, self.encoder(src)[1])

class DecoderLayer(nn.Module):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, nhead)
        self.gate = nn.{kind}Cell(d_model, d_model)
    def forward(self, x, memory):
        return self.gate(self.attention(x, memory, memory)[0], x)

class Decoder(nn.Module):
    def __init__(self, d_model, nhead, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(d_model, nhead) for _ in range(num_layers))
        self.recurrent = nn.{kind}(d_model, d_model)
    def forward(self, x, memory):
        for layer in self.layers:
            x = layer(x, memory)
        return self.recurrent(x)[0]
"""


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_classes_are_no_component(kind: str, tmp_path: Path):
    (tmp_path / "own.py").write_text(SOURCE.format(kind=kind))
    found = {one.name: one.component for one in members(str(tmp_path / "own.py")) or ()}
    assert found["Encoder"] == found["BaselineTransformer"] == ""
    assert found["DecoderLayer"] == "decoder_layer"
    assert found["Decoder"] == "decoder"


@pytest.mark.parametrize(
    ("name", "held", "first"),
    [
        ("hiddim", ["hiddim", "embsize", "nhead"], "d_ff"),
        ("hiddim", ["hiddim", "embsize", "pfdim"], "d_model"),
        ("hiddim", ["hiddim", "nheads", "inputdim"], "d_model"),
    ],
)
def test_hidden_width_of_a_model_with_an_embedding_width_is_the_inner_one(name, held, first):
    assert next(sizes_named(name, held, "")) == first
