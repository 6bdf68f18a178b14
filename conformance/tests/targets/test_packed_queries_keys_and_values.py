"""Attention that takes queries, keys and values in one tensor, between two projections."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

FIRST = """
import math

import torch
from torch import nn


class QKVAttention(nn.Module):
    def forward(self, qkv):
        ch = qkv.shape[1] // 3
        q, k, v = torch.split(qkv, ch, dim=1)
        scale = 1 / math.sqrt(math.sqrt(ch))
        weight = torch.einsum("bct,bcs->bts", q * scale, k * scale)
        weight = torch.softmax(weight.float(), dim=-1).type(weight.dtype)
        return torch.einsum("bts,bcs->bct", weight, v)
"""
LAST = """
import torch
from torch import nn


class QKVMultiheadAttention(nn.Module):
    def __init__(self, *, heads: int, n_ctx: int):
        super().__init__()
        self.heads, self.n_ctx = heads, n_ctx

    def forward(self, qkv):
        batch, n_ctx, width = qkv.shape
        channels = width // self.heads // 3
        q, k, v = qkv.view(batch, n_ctx, self.heads, -1).split(channels, dim=-1)
        scores = torch.einsum("bthc,bshc->bhts", q, k) * channels**-0.5
        weights = torch.softmax(scores, dim=-1)
        return torch.einsum("bhts,bshc->bthc", weights, v).reshape(batch, n_ctx, -1)
"""
CODE = {"QKVAttention": FIRST, "QKVMultiheadAttention": LAST}
FORMULA = "multi_head_attention.formula"


@pytest.mark.parametrize("name", CODE)
def test_attention_on_one_tensor_is_judged_between_projections(tmp_path: Path, name: str) -> None:
    backend = adapted(tmp_path, name, CODE[name])
    assert not broken(backend, FORMULA)
    assert any("queries, keys and values in one tensor" in one for one in backend.assumed)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("QKVAttention", "math.sqrt(math.sqrt(ch))", "math.sqrt(ch)"),
        ("QKVMultiheadAttention", "dim=-1)\n        return", "dim=1)\n        return"),
        ("QKVMultiheadAttention", "channels**-0.5", "width**-0.5"),
    ],
)
def test_mistakes_in_attention_on_one_tensor_are_detected(
    tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, name, CODE[name], right, wrong, FORMULA)
