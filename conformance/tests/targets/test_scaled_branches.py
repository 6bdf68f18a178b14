"""A layer that multiplies its branches by weights of its own is asked about by these weights."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention


class Scale(nn.Module):
    def __init__(self, dim, value):
        super().__init__()
        self.gamma = nn.Parameter(value * torch.ones(dim))

    def forward(self, x):
        return x * self.gamma


class Block(nn.Module):
    def __init__(self, dim, num_heads, mlp_ratio=4.0, init_values=1.0):
        super().__init__()
        self.num_heads, inner = num_heads, int(dim * mlp_ratio)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, inner), nn.Linear(inner, dim)
        self.ls1 = Scale(dim, init_values) if init_values else nn.Identity()
        self.ls2 = Scale(dim, init_values) if init_values else nn.Identity()

    def attend(self, x):
        packed = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))
        query, key, value = packed.permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(query, key, value)
        return self.proj(mixed.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.ls1(self.attend(self.norm1(x)))
        return x + self.ls2(self.fc2(gelu(self.fc1(self.norm2(x)))))
"""


def test_weights_of_branches_are_named_in_the_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"no place for its parameters ls1\.gamma, ls2\.gamma"):
        adapted(tmp_path, "Block", CODE)


def test_the_layer_without_these_weights_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Block", CODE, given={"init_values": None})
    assert broken(backend, "encoder.norm-placement") == []


def test_a_mistaken_layer_without_these_weights_is_a_violation(tmp_path: Path) -> None:
    wrong = CODE.replace("(query, key, value)", "(query, key, value, scale=1.0)")
    reading = {"component": "encoder_layer", "given": {"init_values": None}}
    backend = adapted(tmp_path, "Block", wrong, **reading)
    clause = "encoder.layer-formula"
    assert judge(Bench.for_status(backend), clause).status is Status.VIOLATION
