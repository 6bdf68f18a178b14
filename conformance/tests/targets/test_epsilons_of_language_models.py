"""Epsilons of norms of decoder-only models, which usual rows leave open."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

CODE = """
import math

import torch
from torch import nn
from torch.nn import functional as F


def norm(x):
    return F.rms_norm(x, (x.size(-1),))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.norm1, self.norm2 = norm, norm

    def attend(self, x):
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q, k, v = map(split, self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocab_size, dim, heads, layers, block_size):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim)
        place = torch.arange(block_size).double()[:, None]
        rate = torch.exp(torch.arange(0, dim, 2).double() * -(math.log(10000.0) / dim))
        table = torch.stack([torch.sin(place * rate), torch.cos(place * rate)], -1).flatten(1)
        self.register_buffer("table", table)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(layers)])
        self.norm = norm
        self.head = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, idx):
        x = self.embed(idx) + self.table[: idx.shape[1]].to(self.embed.weight.dtype)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""
PLAIN = "F.rms_norm(x, (x.size(-1),))"


@pytest.mark.proof
@pytest.mark.parametrize(
    "epsilon",
    [
        2.220446049250313e-16,
        pytest.param(1e-12, marks=pytest.mark.proof),
        pytest.param(1e-9, marks=pytest.mark.proof),
    ],
)
def test_small_epsilons_are_distinguished(tmp_path: Path, epsilon: float) -> None:
    code = CODE.replace(PLAIN, f"F.rms_norm(x, (x.size(-1),), eps={epsilon})")
    backend = adapted(tmp_path, "GPT", code if epsilon > 1e-15 else CODE)
    assert backend.choices["rms_epsilon"] == epsilon
    assert broken(backend, "language_model.formula", "language_model.norm-kind") == []


@pytest.mark.proof
def test_no_epsilon_is_that_of_float32_where_this_is_computed(tmp_path: Path) -> None:
    """Torch takes that of the type of its rows, and the formula is judged with the same one."""
    rounded = CODE.replace(PLAIN, "F.rms_norm(x.float(), (x.size(-1),)).to(x.dtype)")
    rounded = rounded.replace(" + self.table[: idx.shape[1]].to(self.embed.weight.dtype)", "")
    backend = adapted(tmp_path, "GPT", rounded)
    assert "float64" not in backend.limits.precisions
    assert backend.choices["rms_epsilon"] == pytest.approx(1.1920929e-07)
    assert broken(backend, "language_model.formula", "language_model.gradient") == []
