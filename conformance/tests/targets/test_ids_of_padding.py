"""Decoder-only models that hide an id of padding by default: they are judged without it."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

CODE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.pairs, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, keep):
        q, k, v = self.pairs(self.norm_1(x)).unflatten(-1, (3, self.heads, -1)).unbind(2)
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~keep, -1e9)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm_2(x))))


class GPT(nn.Module):
    def __init__(self, vocab_size, width, heads, layers, max_len, pad_id=0):
        super().__init__()
        self.pad_id = pad_id
        self.tokens = nn.Embedding(vocab_size, width, padding_idx=pad_id)
        self.positions = nn.Embedding(max_len, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab_size, bias=False)

    def forward(self, ids):
        t = ids.shape[1]
        keep = torch.ones(t, t, dtype=torch.bool).tril() & (ids != self.pad_id)[:, None, None]
        x = self.tokens(ids) + self.positions(torch.arange(t))
        for block in self.blocks:
            x = block(x, keep)
        return self.head(self.norm(x))
"""
FORMULA = "language_model.formula"


@pytest.mark.proof
def test_model_that_hides_an_id_is_judged_without_it(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", CODE)
    assert broken(backend, FORMULA) == []
    assert [one for one in backend.assumed if "assumed pad_id=-1, which nothing says" in one]


@pytest.mark.proof
def test_mistake_in_such_a_model_does_not_pass(tmp_path: Path) -> None:
    assert asked_or_broken(
        tmp_path, "GPT", CODE, "q.shape[-1] ** -0.5", "x.shape[-1] ** -0.5", FORMULA
    )


@pytest.mark.proof
def test_id_that_must_be_given_is_that_of_no_token(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", CODE.replace("pad_id=0", "pad_id"))
    assert broken(backend, FORMULA) == []
    assert [one for one in backend.assumed if "assumed pad_id=-1, which nothing says" in one]
