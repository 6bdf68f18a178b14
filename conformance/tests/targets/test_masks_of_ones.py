"""Decoder-only models whose mask changes the scores of later tokens and does not hide them.

Scores of queries with themselves are asked about.
"""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, broken, edited

CODE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.inputs(self.norm1(x)).chunk(3, -1)
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        seen = torch.ones(x.shape[1], x.shape[1], dtype=x.dtype).tril()
        scores = scores.masked_fill(seen == 0, float("-inf"))
        x = x + self.output((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.network(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, vocab_size, width, heads, n_layers, max_length):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(max_length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab_size)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""

RIGHT = 'scores.masked_fill(seen == 0, float("-inf"))'

MISTAKES = {
    "scores + (1 - seen)": "1 is added at later tokens",
    "scores + seen": "1 is added at all but later tokens",
    "scores * seen": "are 0 at later tokens",
}


@pytest.mark.proof
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mask_that_hides_nothing_is_named(tmp_path: Path, mistake: str) -> None:
    code = edited(CODE, (RIGHT, mistake)).replace("class Transformer", "class MiniGPT")
    backend = adapted(tmp_path, "MiniGPT", code)
    assert any(MISTAKES[mistake] in one for one in backend.assumed)
    assert backend.mistaken is not None
    assert mistake in backend.mistaken.code
    assert broken(backend, "language_model.formula") != []


@pytest.mark.parametrize(
    "right",
    [
        "scores * seen - 1e10 * (1 - seen)",
        'scores + (1 - seen).masked_fill(seen == 0, float("-inf"))',
    ],
)
def test_mask_that_is_multiplied_or_added_and_hides_is_judged(tmp_path: Path, right: str) -> None:
    backend = adapted(tmp_path, "Transformer", edited(CODE, (RIGHT, right)))
    assert broken(backend, "language_model.formula", "language_model.causality") == []


@pytest.mark.proof
def test_scores_of_queries_with_themselves_are_asked_about_at_their_line(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(edited(CODE, ("scores = q @ k", "scores = q @ q")))
    text = asked(f"{file}:Transformer")
    assert "scores and weighted values of layers.0" in text
    assert "scores = q @ q" in text
