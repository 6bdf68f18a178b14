"""Questions about decoder-only models name the line where the numbers leave the formula's."""

from pathlib import Path

import pytest
from proof import share

import attentest
from attentest.targets.adapt import Unclear

MODEL = """
import math
import torch
from torch import nn


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


def repeat_heads(x, times):
    b, heads, length, width = x.shape
    return x[:, :, None].expand(b, heads, times, length, width).reshape(b, -1, length, width)


class Attention(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads, max_len):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.width = n_heads, n_kv_heads, d_model // n_heads
        self.q = nn.Linear(d_model, d_model, bias=False)
        self.k = nn.Linear(d_model, n_kv_heads * self.width, bias=False)
        self.v = nn.Linear(d_model, n_kv_heads * self.width, bias=False)
        self.o = nn.Linear(d_model, d_model, bias=False)
        self.register_buffer("places", torch.arange(max_len).double(), persistent=False)

    def forward(self, x):
        b, n, _ = x.shape
        heads = (self.n_heads, self.n_kv_heads, self.n_kv_heads)
        q, k, v = (
            part(x).view(b, n, count, self.width).transpose(1, 2)
            for part, count in zip((self.q, self.k, self.v), heads)
        )
        rates = 10000.0 ** (-torch.arange(0, self.width, 2).double() / self.width)
        angles = torch.outer(self.places[:n], rates).repeat(1, 2).to(x.dtype)
        cos, sin = angles.cos(), angles.sin()
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        times = self.n_heads // self.n_kv_heads
        k, v = repeat_heads(k, times), repeat_heads(v, times)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.width)
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, -math.inf).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).reshape(b, n, -1))


class Block(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads, d_ff, max_len):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = Attention(d_model, n_heads, n_kv_heads, max_len)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        mixed = self.attention(self.norm1(x))
        return x + mixed + self.down(torch.relu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_kv_heads, d_ff, n_layers, max_len):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(
            Block(d_model, n_heads, n_kv_heads, d_ff, max_len) for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""

WRONG = [
    ("x[:, :, None].expand(b, heads, times,", "x[:, None].expand(b, times, heads,", ""),
    ("-2, -1) / math.sqrt(self.width)", "-2, -1) / self.width", ""),
    (".double() / self.width)", ".double() / self.width / 2)", ""),
    ("q = q * cos + rotate_half(q) * sin", "q = q * cos + q.flip(-1) * sin", ""),
    ("weights @ v)", "weights @ (v * v))", ""),
]
"""An edit of a right model, and the code of the line to be named where it is another one."""


@pytest.mark.proof
def test_right_model_is_read(tmp_path: Path) -> None:
    (tmp_path / "gpt.py").write_text(MODEL)
    attentest.adapted(str(tmp_path / "gpt.py:GPT"))


@share(3)
@pytest.mark.parametrize(("old", "new", "named"), WRONG)
def test_question_about_a_block_of_parallel_sublayers_names_the_line(
    old: str, new: str, named: str, tmp_path: Path
) -> None:
    assert old in MODEL
    text = MODEL.replace(old, new)
    (tmp_path / "gpt.py").write_text(text)
    with pytest.raises(Unclear) as asked:
        attentest.adapted(str(tmp_path / "gpt.py:GPT"))
    line = next(one.strip() for one in text.splitlines() if (named or new) in one)
    assert f"({line})" in str(asked.value)
