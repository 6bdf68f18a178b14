"""Decoder-only models that take one text (T,), without an axis for several texts."""

import pytest
from mistaken_code import adapted, asked, broken, edited
from proof import share

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
        t, width = x.shape
        q, k, v = (one.view(t, self.heads, -1).transpose(0, 1)
                   for one in self.packed(x).chunk(3, -1))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        later = torch.ones(t, t, device=x.device).triu(1).bool()
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.out(mixed.transpose(0, 1).reshape(t, width))

    def forward(self, x):
        x = x + self.attend(self.one(x))
        return x + self.down(F.relu(self.up(self.two(x))))


class GPT(nn.Module):
    def __init__(self, vocab_size, width, heads, layers, context):
        super().__init__()
        self.table = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab_size)

    def forward(self, tokens):
        (t,) = tokens.shape
        x = self.table(tokens) + self.places(torch.arange(t, device=tokens.device))
        return self.head(self.norm(self.blocks(x)))
"""
CLAUSES = ("language_model.formula", "language_model.gradient")


def test_model_of_one_text_is_called_with_each_text(tmp_path):
    backend = adapted(tmp_path, "GPT", CODE)
    assert "it takes one text (T,)" in "\n".join(backend.assumed)
    assert broken(backend, *CLAUSES) == []
    assert "class OneText(nn.Module)" in backend.adapter.loader()


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("q.shape[-1] ** 0.5", "width**0.5"),
        ("x + self.attend(self.one(x))", "self.attend(self.one(x))"),
        ("mixed.transpose(0, 1).reshape", "mixed.reshape"),
    ],
)
def test_mistake_in_a_model_of_one_text_is_reported(tmp_path, right, wrong):
    assert broken(adapted(tmp_path, "GPT", edited(CODE, (right, wrong))), *CLAUSES[:1])


def test_model_of_one_text_is_a_question_under_strict(tmp_path):
    (tmp_path / "own.py").write_text(CODE)
    assert "could not be called" in asked(f"{tmp_path / 'own.py'}:GPT", strict=True)
