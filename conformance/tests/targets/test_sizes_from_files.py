"""Sizes of decoder-only models that a file reads from another, and shares of heads of keys."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

FORMULA = "language_model.formula"
CODE = """
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

settings = json.loads(Path(__file__).with_name("settings.json").read_text())
vocab_size = settings["vocab_size"]
n_embd = settings["model"]["n_embd"]
n_head = settings["model"]["n_head"]
n_layer = settings["model"].get("n_layer", 4)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.qkv, self.out = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.net = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (n_head, -1)).transpose(1, 2)
            for one in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.net(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, n_embd)
        self.places = nn.Embedding(settings["block_size"], n_embd)
        self.blocks = nn.ModuleList(Block() for _ in range(n_layer))
        self.norm, self.head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab_size)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""
SETTINGS = '{"vocab_size": 90, "block_size": 48, "model": {"n_embd": 60, "n_head": 5}}'


@pytest.mark.proof
def test_sizes_that_a_file_reads_from_settings_are_sizes(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(SETTINGS)
    assert broken(adapted(tmp_path, "GPT", CODE), FORMULA) == []


@pytest.mark.proof
def test_mistake_with_sizes_of_a_file_does_not_pass(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(SETTINGS)
    right, wrong = "x = x + self.out(", "x = self.norm1(x) + self.out("
    assert asked_or_broken(tmp_path, "GPT", CODE, right, wrong, FORMULA)


RATIO = """
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, hidden, gqa_ratio):
        super().__init__()
        self.heads, self.shared = heads, heads // gqa_ratio
        columns = width // heads * self.shared
        self.norm1, self.norm2 = nn.RMSNorm(width, 1e-6), nn.RMSNorm(width, 1e-6)
        self.q, self.k = nn.Linear(width, width), nn.Linear(width, columns)
        self.v, self.out = nn.Linear(width, columns), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        h = self.norm1(x)
        q = self.q(h).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (
            one.unflatten(-1, (self.shared, -1)).transpose(1, 2) for one in (self.k(h), self.v(h))
        )
        k, v = (one.repeat_interleave(self.heads // self.shared, 1) for one in (k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(self.up(self.norm2(x)).relu())


class Model(nn.Module):
    def __init__(self, vocab_size, width, num_heads, hidden, n_layers, gqa_ratio=2):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, width)
        blocks = [Block(width, num_heads, hidden, gqa_ratio) for _ in range(n_layers)]
        self.blocks, self.norm = nn.ModuleList(blocks), nn.RMSNorm(width, 1e-6)
        self.head = nn.Linear(width, vocab_size)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""


@pytest.mark.proof
def test_ratio_of_heads_says_how_many_there_are_of_keys(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Model", RATIO)
    assert backend.choices["key_heads"] == "fewer"
    assert broken(backend, FORMULA) == []


@pytest.mark.proof
def test_heads_that_are_dealt_out_in_turn_do_not_pass(tmp_path: Path) -> None:
    right = ".repeat_interleave(self.heads // self.shared, 1)"
    wrong = ".tile(1, self.heads // self.shared, 1, 1)"
    assert asked_or_broken(tmp_path, "Model", RATIO, right, wrong, FORMULA)
