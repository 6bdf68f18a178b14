"""Decoder-only models of one block: nothing says how many there are."""

import pytest
from mistaken_code import adapted, asked, asked_or_broken, broken, edited

CODE = """
import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.packed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        b, t, width = x.shape
        q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2)
                   for one in self.packed(x).chunk(3, -1))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        later = torch.ones(t, t, device=x.device).triu(1).bool()
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(b, t, width))

    def forward(self, x):
        x = x + self.attend(self.one(x))
        return x + self.down(F.relu(self.up(self.two(x))))


class MiniGPT(nn.Module):
    def __init__(self, vocab_size, width, heads, context):
        super().__init__()
        self.table, self.places = nn.Embedding(vocab_size, width), nn.Embedding(context, width)
        self.block = Block(width, heads)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab_size)

    def forward(self, tokens):
        x = self.table(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.block(x)))
"""
FORMULA = "language_model.formula"


def test_model_of_one_block_is_judged(tmp_path):
    backend = adapted(tmp_path, "MiniGPT", CODE)
    assert backend.limits.layers == 1
    assert "a model of one block" in "\n".join(backend.assumed)
    assert broken(backend, FORMULA) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("/ q.shape[-1] ** 0.5", "/ width**0.5"),
        ("x + self.attend(self.one(x))", "self.attend(self.one(x))"),
        ("triu(1)", "triu(2)"),
        ("self.two(x)", "x"),
    ],
)
def test_mistake_in_a_model_of_one_block_is_reported(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "MiniGPT", CODE, right, wrong, FORMULA)


def test_model_of_two_blocks_that_nothing_counts_is_the_question_of_before(tmp_path):
    two = edited(
        CODE,
        (
            "self.block = Block(width, heads)",
            "self.block, self.more = (Block(width, heads) for _ in range(2))",
        ),
        ("self.block(x)", "self.more(self.block(x))"),
    )
    (tmp_path / "own.py").write_text(two)
    assert "nothing in it is layers" in asked(f"{tmp_path / 'own.py'}:MiniGPT")


def test_block_that_all_layers_share_is_no_model_of_one_block(tmp_path):
    shared = edited(
        CODE,
        ("heads, context)", "heads, layers, context)"),
        (
            "self.block = Block(width, heads)",
            "self.block = nn.Sequential(*[Block(width, heads)] * layers)",
        ),
    )
    (tmp_path / "own.py").write_text(shared)
    assert "share all parameters" in asked(f"{tmp_path / 'own.py'}:MiniGPT")
