"""Encoders whose layers lie in a Sequential that is never called: each returns its weights too."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

CLASSIFIER = """
import math

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, d_model, n_heads, ffn_dim):
        super().__init__()
        self.n_heads = n_heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.up, self.down = nn.Linear(d_model, ffn_dim), nn.Linear(ffn_dim, d_model)

    def attend(self, x):
        q, k, v = (one.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
                   for one in self.qkv(x).chunk(3, -1))
        weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2)), weights

    def forward(self, x):
        mixed, weights = self.attend(x)
        x = self.norm1(x + mixed)
        return self.norm2(x + self.down(torch.relu(self.up(x)))), weights


class Classifier(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, ffn_dim, n_layers, n_classes=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.Sequential(*[Block(d_model, n_heads, ffn_dim) for _ in range(n_layers)])
        self.head = nn.Linear(d_model, n_classes)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x, weights = block(x)
        return self.head(x.mean(dim=1)), weights
"""
FORMULA = "encoder.formula"


def test_layers_of_a_sequential_are_called_one_by_one(tmp_path):
    assert broken(adapted(tmp_path, "Classifier", CLASSIFIER), FORMULA) == []


def test_layers_of_a_sequential_that_is_called_are_judged_as_before(tmp_path):
    code = edited(
        CLASSIFIER,
        ("torch.relu(self.up(x)))), weights", "torch.relu(self.up(x))))"),
        ("        for block in self.blocks:\n            x, weights = block(x)\n", ""),
        ("self.head(x.mean(dim=1)), weights", "self.head(self.blocks(x).mean(dim=1))"),
    )
    assert broken(adapted(tmp_path, "Classifier", code), FORMULA) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" / math.sqrt(q.shape[-1])", ""),
        ("            x, weights = block(x)\n", "            x, weights = self.blocks[0](x)\n"),
    ],
)
def test_mistake_in_such_layers_is_no_pass(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "Classifier", CLASSIFIER, right, wrong, FORMULA)
