"""Models without a telling name: code around them that continues texts shows what they are for."""

import pytest
from mistaken_code import adapted, broken, edited

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
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, width))

    def forward(self, x):
        x = x + self.attend(self.one(x))
        return x + self.down(F.gelu(self.up(self.two(x))))


class StoryModel(nn.Module):
    def __init__(self, vocab_size, width, heads, layers, context):
        super().__init__()
        self.table = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab_size)

    def forward(self, tokens):
        x = self.table(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.blocks(x)))
"""
GOING_ON = """
import torch
from own import StoryModel


def go_on(model, tokens, count):
    for _ in range(count):
        logits = model(tokens)[:, -1, :]
        token = torch.multinomial(logits.softmax(-1), 1)
        tokens = torch.cat([tokens, token], 1)
    return tokens
"""
FORMULA = "language_model.formula"


@pytest.mark.proof
def test_model_that_code_around_continues_has_to_hide_later_tokens(tmp_path):
    (tmp_path / "story.py").write_text(GOING_ON)
    backend = adapted(tmp_path, "StoryModel", CODE)
    assert backend.components == ("language_model",)
    assert broken(backend, FORMULA)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.multinomial(logits.softmax(-1), 1)", "tokens[:, :1]"),
        ("def go_on", "mask_token = 3\n\n\ndef go_on"),
    ],
)
def test_model_that_nothing_continues_may_see_all_tokens(tmp_path, old, new):
    (tmp_path / "story.py").write_text(edited(GOING_ON, (old, new)))
    backend = adapted(tmp_path, "StoryModel", CODE)
    assert "language_model" not in backend.components


def test_model_that_hides_later_tokens_conforms(tmp_path):
    (tmp_path / "story.py").write_text(GOING_ON)
    right = edited(
        CODE,
        (
            "return self.out((scores",
            "later = torch.ones(t, t, device=x.device).triu(1).bool()\n"
            '        scores = scores.masked_fill(later, float("-inf"))\n'
            "        return self.out((scores",
        ),
    )
    assert broken(adapted(tmp_path, "StoryModel", right), FORMULA) == []
