"""Attention whose words or branches say that other numbers than the formula's are meant."""

from pathlib import Path

import pytest
from mistaken_code import adapted

from attentest.targets.adapt import Unclear

CODE = """
import math

import torch
from torch import nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.per_head = heads, dim // heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.fused = hasattr(F, "scaled_dot_product_attention")

    def forward(self, x, mask=None):
        batch, length, dim = x.shape
        q, k, v = (
            one.view(batch, length, self.heads, self.per_head).transpose(1, 2)
            for one in self.qkv(x).chunk(3, -1)
        )
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(self.per_head)
            if mask is not None:
                scores = scores + mask[..., :length, :length]
            mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, dim))
"""
MUP = CODE.replace("is_causal=True)", "is_causal=True, scale=1 / self.per_head)  # muP")


def test_mask_that_another_branch_reads_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="reads mask in another one alone"):
        adapted(tmp_path, "SelfAttention", CODE)


def test_mask_of_padding_that_another_branch_reads_is_judged(tmp_path: Path) -> None:
    made = adapted(tmp_path, "SelfAttention", CODE.replace("mask", "padding_mask"))
    assert made.choices["attention_causality"] == "built-in"


def test_scale_of_a_parametrisation_is_asked_about(tmp_path: Path) -> None:
    code = MUP.replace("mask=None", "").replace("x, )", "x)").replace("mask is not None", "False")
    with pytest.raises(Unclear, match=r'says "muP", in which scores are divided by d_k'):
        adapted(tmp_path, "SelfAttention", code)
    adapted(tmp_path, "SelfAttention", code.replace("# muP", "# as usual"))
