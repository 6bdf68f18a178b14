"""Windows that are longer than the texts that code is read by: they are asked about."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt import Unclear

ATTENTION = """
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, dim, heads, window=128):
        super().__init__()
        self.heads, self.window = heads, window
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.to_qkv(x).chunk(3, -1)
        )
        place = torch.arange(x.shape[1], device=x.device)
        ahead = place[:, None] - place
        scores = q @ k.mT * q.shape[-1] ** -0.5
        scores = scores.masked_fill((ahead < 0) | (ahead >= self.window), float("-inf"))
        return self.to_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
BOTH_SIDES = ATTENTION.replace("(ahead < 0) | (ahead >= self.window)", "ahead.abs() > self.window")
FADING = ATTENTION.replace("ahead >= self.window", "ahead < 0").replace(
    "scores = scores.masked", "scores = (scores - 0.5 * ahead).masked"
)
MODEL = (
    ATTENTION
    + """

class Block(nn.Module):
    def __init__(self, dim, heads, hidden, window):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = SelfAttention(dim, heads, window)
        self.network = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.network(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocab_size, dim, heads, hidden, n_layers, max_len=1024, window=128):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab_size, dim), nn.Embedding(max_len, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, hidden, window) for _ in range(n_layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""
)
FIXED = MODEL.replace("Block(dim, heads, hidden, window) for", "Block(dim, heads, hidden, 128) for")


@pytest.mark.proof
@share(3, rest=1)
@pytest.mark.parametrize(
    ("name", "code", "seen"),
    [
        ("SelfAttention", BOTH_SIDES, "the 128 positions to each side of it alone"),
        ("GPT", FIXED, "itself and the 127 before it alone: a window"),
    ],
)
def test_a_long_window_is_a_question(tmp_path: Path, name: str, code: str, seen: str) -> None:
    with pytest.raises(Unclear, match=seen):
        adapted(tmp_path, name, code)


@pytest.mark.parametrize(
    ("name", "code", "clause"),
    [
        ("SelfAttention", ATTENTION, "multi_head_attention.formula"),
        ("GPT", MODEL, "language_model.formula"),
    ],
)
def test_code_with_a_longer_window_is_judged(
    tmp_path: Path, name: str, code: str, clause: str
) -> None:
    assert broken(adapted(tmp_path, name, code, given={"window": 4096}), clause) == []


def test_a_bias_that_fades_out_is_no_window(tmp_path: Path) -> None:
    with pytest.raises(Unclear) as asked:
        adapted(tmp_path, "SelfAttention", FADING)
    assert "window" not in str(asked.value)
