"""Stacks of designs that the specification does not have: they are asked about, not accused."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x, mask=None):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, mask)
        return self.o(mixed.transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, inner):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = Attention(dim, heads)
        self.up, self.down = nn.Linear(dim, inner), nn.Linear(inner, dim)

    def forward(self, x, mask=None):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.down(self.up(self.norm2(x)).relu())


class Encoder(nn.Module):
    def __init__(self, dim, depth, heads, inner):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(dim, heads, inner) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)
"""
SHIFT = """
def shifted(x):
    kept, moved = x.chunk(2, dim=-1)
    return torch.cat([kept, functional.pad(moved, (0, 0, 1, -1))], dim=-1)


class Attention"""
SHIFTED = edited(CODE, ("class Attention", SHIFT))
LOOPED = edited(
    CODE,
    (
        "        for layer in self.layers:\n            x = layer(x, mask)",
        "        for _ in range(3):\n"
        "            for layer in self.layers:\n                x = layer(x, mask)",
    ),
)


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        ("x = layer(x, mask)", "x = layer(shifted(x), mask)", "Encoder"),
        ("self.attention(self.norm1(x)", "self.attention(shifted(self.norm1(x))", "EncoderLayer"),
        ("self.attention(self.norm1(x)", "self.attention(self.norm1(shifted(x))", "EncoderLayer"),
    ],
)
def test_token_shift_is_asked_about(tmp_path: Path, right: str, wrong: str, name: str) -> None:
    with pytest.raises(Unclear, match="those of another position, as a token shift"):
        adapted(tmp_path, name, edited(SHIFTED, (right, wrong)))


def test_layers_that_are_called_again_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="calls each of its 2 layers 3 times"):
        adapted(tmp_path, "Encoder", LOOPED)


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("for layer in self.layers:", "for layer in [self.layers[0]] * len(self.layers):"),
        ("in self.layers:", "in reversed(self.layers):"),
        ("x = layer(x, mask)", "x = layer(x.flip(-1), mask)"),
        ("x = x + self.attention", "x = self.attention"),
    ],
)
def test_other_stacks_are_judged_and_wrong(tmp_path: Path, right: str, wrong: str) -> None:
    found = adapted(tmp_path, "Encoder", edited(CODE, (right, wrong)))
    assert broken(found, "encoder.formula")


def test_usual_stack_conforms(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "Encoder", CODE), "encoder.formula")
