"""Decoder-only models that turn heads by positions one by one, or repeat those of keys before."""

from pathlib import Path

import pytest
from folders import SUPPORT

from attentest.targets import file_modules
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.inference import Inferred, infer

TURNS = "        xq, xk = apply_rotary_emb(xq, xk, freqs_cos, freqs_sin)\n"
REPEATS = "        xk, xv = repeat_kv(xk, self.n_rep), repeat_kv(xv, self.n_rep)\n"
BACK = """

def apart(xq, xk, cosines, sines):
    turned, _ = apply_rotary_emb(xq, xk, cosines, sines)
    _, back = apply_rotary_emb(xq, xk, cosines, -sines)
    return turned, back
"""


def read(folder: Path, turns: str) -> Inferred:
    """Return a published model as it is read, with its keys repeated before `turns`."""
    source = (SUPPORT / "wild_language_models" / "llama_c.py").read_text(encoding="utf-8")
    assert TURNS + REPEATS in source
    path = folder / "own.py"
    source = source.replace(TURNS + REPEATS, REPEATS + turns) + BACK
    path.write_text(source, encoding="utf-8")
    return infer(file_modules.load(path).Transformer, "Transformer", Reading())


def test_keys_that_are_repeated_first_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, TURNS)
    assert found.choices["attention_rotary"] == "query-and-key"
    assert found.choices["key_heads"] == "fewer"


def test_keys_that_are_repeated_first_and_turned_back_are_asked_about(tmp_path: Path) -> None:
    back = TURNS.replace(TURNS.strip(), "xq, xk = apart(xq, xk, freqs_cos, freqs_sin)")
    try:
        found = read(tmp_path, back)
    except Unclear:
        return
    assert found.mistake is not None


HEADS = """
import math

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.query, self.key = nn.Linear(width, size), nn.Linear(width, size)
        self.value = nn.Linear(width, size)

    def turned(self, x):
        half = x.shape[-1] // 2
        rates = 10000.0 ** -(torch.arange(half) / half)
        angles = torch.arange(x.shape[1])[:, None] * rates
        even, odd = x[..., ::2], x[..., 1::2]
        pairs = even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()
        return torch.stack(pairs, dim=-1).flatten(2)

    def forward(self, x):
        q, k = self.turned(self.query(x)), self.turned(self.key(x))
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(later, -math.inf)
        return scores.softmax(-1) @ self.value(x)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = nn.ModuleList(Head(width, width // heads) for _ in range(heads))
        self.output, self.wide = nn.Linear(width, width), nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        y = self.first(x)
        x = x + self.output(torch.cat([head(y) for head in self.heads], dim=-1))
        return x + self.narrow(self.wide(self.second(x)).relu())


class TinyGPT(nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, n_embd)
        self.blocks = nn.ModuleList(Block(n_embd, n_head) for _ in range(n_layer))
        self.norm, self.head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab_size)

    def forward(self, ids):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""


@pytest.mark.proof
def test_heads_that_are_turned_one_by_one_are_read(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(HEADS, encoding="utf-8")
    found = infer(file_modules.load(path).TinyGPT, "TinyGPT", Reading())
    assert found.choices["attention_rotary"] == "query-and-key"
    assert found.choices["rotary_pairs"] == "adjacent"


@pytest.mark.proof
def test_keys_of_heads_that_are_not_turned_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(HEADS.replace("self.turned(self.key(x))", "self.key(x)"), encoding="utf-8")
    try:
        found = infer(file_modules.load(path).TinyGPT, "TinyGPT", Reading())
    except Unclear:
        return
    assert found.mistake is not None
