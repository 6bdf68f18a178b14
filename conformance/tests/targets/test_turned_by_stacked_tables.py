"""Attention whose caller gives cosines and sines along a last axis of 2."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

STACKED = """
import torch
from torch import nn


def turned(x, freqs_cis):
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    cos, sin = freqs_cis.view(1, pairs.size(1), 1, pairs.size(3), 2).unbind(-1)
    first, second = pairs.unbind(-1)
    return torch.stack([first * cos - second * sin, second * cos + first * sin], -1).flatten(3)


class Attention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.heads = n_heads
        self.wqkv = nn.Linear(dim, 3 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x, freqs_cis, mask):
        batch, length, width = x.shape
        q, k, v = self.wqkv(x).view(batch, length, 3, self.heads, -1).unbind(2)
        q, k = turned(q, freqs_cis), turned(k, freqs_cis)
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        out = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.wo(out.transpose(1, 2).reshape(batch, length, width))
"""

CLAUSES = [f"multi_head_attention.{one}" for one in ("formula", "masked-keys-ignored", "rotary")]


def test_attention_with_stacked_tables_of_its_caller_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Attention", STACKED)
    assert backend.choices["attention_rotary"] == "query-and-key"
    assert any("along a last axis of 2 (T, E/2)" in one for one in backend.assumed)
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, *CLAUSES) == []


@share(2)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("cos, sin = freqs_cis", "sin, cos = freqs_cis"),
        ("second * cos + first * sin", "second * cos - first * sin"),
        ("turned(q, freqs_cis), turned(k, freqs_cis)", "turned(q, freqs_cis), k"),
        ("self.heads, -1).unbind(2)", "-1, self.heads).transpose(3, 4).unbind(2)"),
        ("attn_mask=mask)", "attn_mask=mask, scale=1.0)"),
    ],
)
def test_mistake_in_attention_with_stacked_tables_does_not_pass(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, "Attention", STACKED, right, wrong, *CLAUSES)
