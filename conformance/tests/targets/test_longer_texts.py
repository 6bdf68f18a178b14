"""Texts beyond the length that code is built for: designs that change with it are asked about."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

ROTARY = """
import torch
import torch.nn.functional as F
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, max_len, base=10000.0):
        super().__init__()
        self.dim, self.max_len, self.base = dim, max_len, base

    def forward(self, x):
        length, base = x.shape[-2], self.base
        places = torch.arange(length, dtype=torch.float64, device=x.device)
        if length > self.max_len:
            base = base * (2 * length / self.max_len - 1) ** (self.dim / (self.dim - 2))
        steps = torch.arange(0, self.dim, 2, dtype=torch.float64, device=x.device) / self.dim
        angles = torch.outer(places, base**-steps)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
"""
MODEL = (
    ROTARY
    + """

class Block(nn.Module):
    def __init__(self, width, heads, hidden, max_len):
        super().__init__()
        self.heads, self.turn = heads, RotaryEmbedding(width // heads, max_len)
        self.norm1, self.norm2 = nn.RMSNorm(width, 1e-6), nn.RMSNorm(width, 1e-6)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, vocab_size, width, heads, hidden, n_layers, max_len):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList(Block(width, heads, hidden, max_len) for _ in range(n_layers))
        self.norm = nn.RMSNorm(width, 1e-6)
        self.head = nn.Linear(width, vocab_size, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""
)
SCALES = "base = base * (2 * length / self.max_len - 1) ** (self.dim / (self.dim - 2))"
WRAPS = "places = places % self.max_len"
CLAUSES = [
    ("RotaryEmbedding", ROTARY, "rotary.too-long"),
    ("Model", MODEL, "language_model.too-long-input"),
]


@pytest.mark.parametrize(("name", "code"), [("RotaryEmbedding", ROTARY), ("Model", MODEL)])
def test_dynamic_scaling_is_a_question(tmp_path: Path, name: str, code: str) -> None:
    with pytest.raises(Unclear, match=r"changes? with the length.*--give max_len=\d+"):
        adapted(tmp_path, name, code)


@pytest.mark.parametrize(("name", "code", "clause"), CLAUSES)
def test_the_advised_length_has_it_judged(
    tmp_path: Path, name: str, code: str, clause: str
) -> None:
    assert broken(adapted(tmp_path, name, code, given={"max_len": 1_000_000}), clause) == []


@pytest.mark.parametrize(("name", "code", "clause"), CLAUSES)
def test_positions_that_begin_anew_are_a_violation(
    tmp_path: Path, name: str, code: str, clause: str
) -> None:
    assert broken(adapted(tmp_path, name, code.replace(SCALES, WRAPS)), clause)
