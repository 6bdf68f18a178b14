"""Decoder-only models that read a cache of each layer from a list, which no call leaves out."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.packed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache):
        b, t, width = x.shape
        q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2)
                   for one in self.packed(self.one(x)).chunk(3, -1))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        later = torch.ones(t, k.shape[2]).triu(1 + k.shape[2] - t).bool()
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, width))
        return x + self.down(torch.relu(self.up(self.two(x)))), (k, v)


class GPT(nn.Module):
    def __init__(self, vocab_size, width, heads, layers, context):
        super().__init__()
        self.table, self.places = nn.Embedding(vocab_size, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab_size)

    def forward(self, tokens, kv_caches=None):
        begun = 0 if kv_caches[0] is None else kv_caches[0][0].shape[2]
        x = self.table(tokens) + self.places(torch.arange(begun, begun + tokens.shape[1]))
        for i, block in enumerate(self.blocks):
            x, kv_caches[i] = block(x, kv_caches[i])
        return self.head(self.norm(x)), kv_caches
"""

LOOP = """        for i, block in enumerate(self.blocks):
            x, kv_caches[i] = block(x, kv_caches[i])
        return self.head(self.norm(x)), kv_caches
"""
ZIPPED = """        made = []
        for block, cache in zip(self.blocks, kv_caches):
            x, cache = block(x, cache)
            made.append(cache)
        return self.head(self.norm(x)), made
"""
CLAUSES = ("language_model.formula", "language_model.cached-chunks")


@pytest.mark.parametrize(
    "edits",
    [
        (),
        (("kv_caches=None", "kv_caches"), ("kv_caches", "past_key_values")),
        ((LOOP, ZIPPED), ("kv_caches", "past_key_values")),
    ],
)
def test_a_list_of_no_caches_is_given(tmp_path: Path, edits: tuple[tuple[str, str], ...]) -> None:
    backend = adapted(tmp_path, "GPT", edited(SOURCE, *edits))
    assert any("[None] * len(model.blocks)" in one for one in backend.understood)
    assert broken(backend, *CLAUSES) == []


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.up(self.two(x))", "self.up(self.one(x))"),
        ("torch.cat([cache[1], v], 2)", "torch.cat([v, cache[1]], 2)"),
    ],
)
def test_a_list_of_no_caches_excuses_no_mistake(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "GPT", SOURCE, right, wrong, *CLAUSES)
