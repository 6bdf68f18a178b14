"""Questions about whole models whose call fails: the line is named, and a cast is no cause."""

from pathlib import Path

import pytest

import attentest
from attentest.targets.adapt import Unclear

SOURCE = """
import torch
from torch import nn


class Transformer(nn.Module):
    def __init__(self, src_vocab_size, tgt_vocab_size, d_model, num_heads, num_layers, d_ff):
        super().__init__()
        self.source = nn.Embedding(src_vocab_size, d_model)
        self.target = nn.Embedding(tgt_vocab_size, d_model)
        sides = [d_model, num_heads, num_layers, num_layers, d_ff]
        self.stacks = nn.Transformer(*sides, batch_first=True)
        self.out = nn.Linear(d_model, tgt_vocab_size)

    def forward(self, src, tgt):
        shares = self.source(src).softmax(-1)
        return self.out(self.stacks(shares, self.target(tgt)))
"""
SOFTMAX = ".softmax(-1)"


def question(folder: Path, code: str) -> str:
    file = folder / "failing.py"
    file.write_text(code, encoding="utf-8")
    with pytest.raises(Unclear) as found:
        attentest.adapted(f"{file}:Transformer")
    return str(found.value)


def test_the_line_at_which_a_call_fails_is_named(tmp_path: Path) -> None:
    line = SOURCE[: SOURCE.index(SOFTMAX)].count("\n") + 1
    said = question(tmp_path, SOURCE.replace(SOFTMAX, ".softmax(7)"))
    assert f"(at failing.py:{line})" in said
    assert "float64" not in said


def test_softmax_of_a_fixed_precision_hides_no_other_question(tmp_path: Path) -> None:
    """In single precision the model answers, and what is asked then is what it lacks."""
    fixed = SOURCE.replace(SOFTMAX, ".softmax(-1, dtype=torch.float32)")
    assert "takes no mask and hides nothing" in question(tmp_path, fixed)


BLOCK = """
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.maps = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x):
        return self.maps(x, x, x, need_weights=False)[0]


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, flavour, d_ff, dropout=0.0):
        super().__init__()
        self.attention = Attention(width, heads, flavour=flavour)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, d_ff), nn.ReLU(), nn.Linear(d_ff, width)
        )

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.network(x))
"""


def test_question_holds_what_every_option_raises(tmp_path: Path) -> None:
    file = tmp_path / "block.py"
    file.write_text(BLOCK, encoding="utf-8")
    with pytest.raises(Unclear) as found:
        attentest.adapted(f"{file}:EncoderLayer")
    line = BLOCK[: BLOCK.index(", flavour=flavour")].count("\n") + 1
    said = str(found.value)
    assert "nothing says what flavour is" in said
    assert "With all of them it fails alike: TypeError: Attention.__init__() got an" in said
    assert f"(at block.py:{line})" in said
