"""Masks as numbers, 1 and 0: where one is inverted, its maker or its user may be wrong."""

from pathlib import Path

import pytest

from attentest import adapted
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Location, Status

CODE = """
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(3)])
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x, attention_mask):
        q, k, v = (m(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for m in self.qkv)
        s = q @ k.mT / q.shape[-1] ** 0.5
        s = s + (1.0 - attention_mask[:, None, None, :].to(s.dtype)) * -10000.0
        return self.out((s.softmax(-1) @ v).transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.attention = SelfAttention(hidden, heads)
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.up, self.down = nn.Linear(hidden, intermediate), nn.Linear(intermediate, hidden)

    def forward(self, x, attention_mask):
        x = self.norm1(x + self.attention(x, attention_mask))
        return self.norm2(x + self.down(self.up(x).relu()))


class TextEncoder(nn.Module):
    def __init__(self, vocab_size, hidden, heads, intermediate, num_layers, pad_idx=0):
        super().__init__()
        self.pad_idx = pad_idx
        self.tok = nn.Embedding(vocab_size, hidden, padding_idx=pad_idx)
        self.layers = nn.ModuleList(Layer(hidden, heads, intermediate) for _ in range(num_layers))

    def forward(self, ids):
        mask = (ids != self.pad_idx).float()
        x = self.tok(ids)
        for layer in self.layers:
            x = layer(x, mask)
        return x
"""


def located(folder: Path, old: str, new: str) -> Location | None:
    """Return the line at which the encoder with an edit begins to be wrong."""
    assert CODE.count(old) == 1
    file = folder / "own.py"
    file.write_text(CODE.replace(old, new), encoding="utf-8")
    verdict = judge(Bench(adapted(f"{file}:TextEncoder")), "encoder.formula")
    assert verdict.status is Status.VIOLATION
    return verdict.location


@pytest.mark.proof
def test_inverted_mask_is_not_proved_where_it_is_used(tmp_path: Path) -> None:
    found = located(tmp_path, "(ids != self.pad_idx)", "(ids == self.pad_idx)")
    assert found is None or not found.confirmed or "pad_idx" in found.code


@pytest.mark.proof
def test_transposed_mask_is_proved_where_it_is_used(tmp_path: Path) -> None:
    found = located(
        tmp_path, "attention_mask[:, None, None, :]", "attention_mask[:, None, :, None]"
    )
    assert found is not None
    assert "attention_mask[:, None, :, None]" in found.code
    assert found.confirmed
