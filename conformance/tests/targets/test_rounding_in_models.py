"""Encoders and models that round their scores or their softmax to float32, next to positions."""

import pytest
from mistaken_code import adapted, broken, edited

CODE = """
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def forward(self, q, k, v, mask=None):
        q, k, v = self.split(self.q(q)), self.split(self.k(k)), self.split(self.v(v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.float().masked_fill(mask == 0, -1e9).type_as(scores)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads, inner, crossing=False):
        super().__init__()
        self.own = Attention(width, heads)
        self.cross = Attention(width, heads) if crossing else None
        self.ff = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 + crossing)])

    def forward(self, x, mask=None, memory=None, memory_mask=None):
        x = self.norms[0](x + self.own(x, x, x, mask))
        if self.cross is not None:
            x = self.norms[1](x + self.cross(x, memory, memory, memory_mask))
        return self.norms[-1](x + self.ff(x))


class Positions(nn.Module):
    def __init__(self, width, longest):
        super().__init__()
        angles = torch.arange(longest).unsqueeze(1) * torch.exp(
            torch.arange(0, width, 2) * (-math.log(10000.0) / width)
        )
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.size(1)]
"""
ENCODER = """

class TextEncoder(nn.Module):
    def __init__(self, vocab_size, width=32, heads=4, inner=64, n_layers=2, max_len=128):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.positions = Positions(width, max_len)
        self.layers = nn.ModuleList([Layer(width, heads, inner) for _ in range(n_layers)])

    def forward(self, ids, mask=None):
        x = self.positions(self.tokens(ids))
        for layer in self.layers:
            x = layer(x, mask)
        return x
"""
WHOLE = """

class Transformer(nn.Module):
    def __init__(
        self, src_vocab, tgt_vocab, d_model=32, heads=4, d_ff=64, n_layers=2, max_len=128, pad_idx=0
    ):
        super().__init__()
        self.pad_idx, self.width = pad_idx, d_model
        self.source = nn.Embedding(src_vocab, d_model, padding_idx=pad_idx)
        self.target = nn.Embedding(tgt_vocab, d_model, padding_idx=pad_idx)
        self.positions = Positions(d_model, max_len)
        self.encoder = nn.ModuleList([Layer(d_model, heads, d_ff) for _ in range(n_layers)])
        self.decoder = nn.ModuleList([Layer(d_model, heads, d_ff, True) for _ in range(n_layers)])
        self.head = nn.Linear(d_model, tgt_vocab)
        self.head.weight = self.target.weight

    def forward(self, src, tgt):
        mask = (src != self.pad_idx)[:, None, None]
        ahead = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).tril()
        own = (tgt != self.pad_idx)[:, None, None] & ahead
        x = self.positions(self.source(src) * math.sqrt(self.width))
        for layer in self.encoder:
            x = layer(x, mask)
        y = self.positions(self.target(tgt) * math.sqrt(self.width))
        for layer in self.decoder:
            y = layer(y, own, x, mask)
        return self.head(y)
"""
ROUNDED = ("scores.softmax(-1)", "scores.float().softmax(-1).type_as(v)")
PLAIN = (
    "scores.float().masked_fill(mask == 0, -1e9).type_as(scores)",
    "scores.masked_fill(~mask, -1e9)",
)


@pytest.mark.proof
def test_encoder_that_rounds_its_masked_scores_is_judged_in_float32(tmp_path):
    read = adapted(tmp_path, "TextEncoder", CODE + ENCODER)
    assert "float64" not in read.limits.precisions
    assert not broken(read, "encoder.formula", "encoder.layers-in-sequence")
    unscaled = ("/ math.sqrt(q.size(-1))", "")
    wrong = adapted(tmp_path, "TextEncoder", edited(CODE + ENCODER, unscaled))
    assert broken(wrong, "encoder.formula")


@pytest.mark.proof
def test_softmax_in_float32_is_measured_next_to_tables_in_float32(tmp_path):
    read = adapted(tmp_path, "Transformer", edited(CODE + WHOLE, ROUNDED, PLAIN))
    choices = read.choices
    assert (choices["softmax_arithmetic"], choices["position_arithmetic"]) == ("float32",) * 2
    assert not broken(read, "model.parameter-gradient", "model.tied-gradient")
    exact = adapted(tmp_path, "Transformer", edited(CODE + WHOLE, PLAIN))
    assert "softmax_arithmetic" not in exact.choices
