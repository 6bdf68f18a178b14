"""Encoders whose layers lie in a Sequential, are numbered as block0, and get lengths."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

CODE = """
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.W_q = nn.Linear(width, width)
        self.W_k = nn.Linear(width, width)
        self.W_v = nn.Linear(width, width)
        self.W_o = nn.Linear(width, width)

    def forward(self, x, valid_lens):
        query, key, value = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.W_q, self.W_k, self.W_v)
        )
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        if valid_lens is not None:
            places = torch.arange(x.shape[1], device=x.device)
            hidden = places[None] >= valid_lens[:, None]
            scores = scores.masked_fill(hidden[:, None, None], -1e6)
        mixed = scores.softmax(-1) @ value
        return self.W_o(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, inner, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1 = nn.LayerNorm(width)
        self.ffn = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x, valid_lens):
        y = self.norm1(x + self.attention(x, valid_lens))
        return self.norm2(y + self.ffn(y))


class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, width, inner, heads, num_layers, max_len=1000):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, width)
        self.positions = nn.Parameter(torch.randn(1, max_len, width))
        self.blks = nn.Sequential()
        for i in range(num_layers):
            self.blks.add_module(f"NAME{i}", Block(width, inner, heads))

    def forward(self, tokens, valid_lens):
        x = self.embedding(tokens) + self.positions[:, : tokens.shape[1]]
        for block in self.blks:
            x = block(x, valid_lens)
        return x
"""
CLAUSES = ("encoder.formula", "encoder.padding-invariance")


@share(2, rest=1)
@pytest.mark.parametrize("start", ["", "block"])
def test_layers_that_are_called_one_by_one_are_judged_with_lengths(
    tmp_path: Path, start: str
) -> None:
    backend = adapted(tmp_path, "TokenEncoder", CODE.replace("NAME", start), component="encoder")
    assert any("valid_lens: the number of keys" in one for one in backend.understood)
    assert broken(backend, *CLAUSES) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (">= valid_lens", "> valid_lens"),
        ("places[None] >=", "places[None] <"),
        ("x = block(x, valid_lens)", "x = block(x, None)"),
        (
            "self.norm1(x + self.attention(x, valid_lens))",
            "self.norm1(self.attention(x, valid_lens))",
        ),
        ("/ math.sqrt(query.shape[-1])", ""),
    ],
)
def test_mistakes_in_layers_that_are_called_one_by_one_are_no_pass(
    tmp_path: Path, right: str, wrong: str
) -> None:
    code = CODE.replace("NAME", "block")
    assert asked_or_broken(tmp_path, "TokenEncoder", code, right, wrong, *CLAUSES)
