"""Decoder-only models whose heads of attention are each as wide as the model."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = q @ k.transpose(-2, -1) / x.shape[-1] ** 0.5
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return scores.masked_fill(later, float("-inf")).softmax(-1) @ v


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = nn.ModuleList(Head(width) for _ in range(heads))
        self.output = nn.Linear(heads * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width)
        )

    def forward(self, x):
        mixed = torch.cat([head(x) for head in self.heads], dim=-1)
        x = self.norm1(x + self.output(mixed))
        return self.norm2(x + self.network(x))


class MiniGPT(nn.Module):
    def __init__(self, vocab_size, width, heads, hidden, n_layers, max_length):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(max_length, width)
        self.blocks = nn.ModuleList(Block(width, heads, hidden) for _ in range(n_layers))
        self.head = nn.Linear(width, vocab_size)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x)
"""

JOINED = (
    (
        "self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))",
        "self.h = heads\n        self.query, self.key, self.value = (\n"
        "            nn.Linear(width, heads * width) for _ in range(3)\n        )",
    ),
    ("__init__(self, width):", "__init__(self, width, heads):"),
    ("nn.ModuleList(Head(width) for _ in range(heads))", "Head(width, heads)"),
    ("torch.cat([head(x) for head in self.heads], dim=-1)", "self.heads(x)"),
    (
        "q, k, v = self.query(x), self.key(x), self.value(x)",
        "q, k, v = (\n            one(x).unflatten(-1, (self.h, -1)).transpose(1, 2)\n"
        "            for one in (self.query, self.key, self.value)\n        )",
    ),
    ("softmax(-1) @ v\n", "softmax(-1).matmul(v).transpose(1, 2).flatten(2)\n"),
)


@pytest.mark.proof
@pytest.mark.parametrize("edits", [(), JOINED])
def test_heads_as_wide_as_the_model_are_judged(
    tmp_path: Path, edits: tuple[tuple[str, str], ...]
) -> None:
    backend = adapted(tmp_path, "MiniGPT", edited(CODE, *edits))
    assert backend.choices["head_width"] == "d"
    assert any("head_width=d" in one for one in backend.assumed)
    assert broken(backend, "language_model.formula", "multi_head_attention.head-width") == []


@pytest.mark.proof
@pytest.mark.parametrize(
    "mistake",
    [
        (".triu(1)", ".triu(2)"),
        ("self.norm2(x + self.network(x))", "self.norm1(x + self.network(x))"),
        ("/ x.shape[-1] ** 0.5", "/ (x.shape[-1] // 2) ** 0.5"),
    ],
)
def test_mistake_in_heads_as_wide_as_the_model_does_not_pass(
    tmp_path: Path, mistake: tuple[str, str]
) -> None:
    try:
        backend = adapted(tmp_path, "MiniGPT", edited(CODE, mistake))
    except Unclear:
        return
    assert broken(backend, "language_model.formula") != []
