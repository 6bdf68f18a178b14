"""Steps with a cache that are wrong: a loop of the file shows that they are called so."""

import pytest
from mistaken_code import adapted, asked, broken, edited

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

    def attend(self, x, past):
        b, t, width = x.shape
        q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2)
                   for one in self.packed(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        later = torch.ones(t, k.shape[2], device=x.device).triu(1 + k.shape[2] - t).bool()
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(b, t, width)), (k, v)

    def forward(self, x, past=None):
        attended, kept = self.attend(self.one(x), past)
        x = x + attended
        return x + self.down(F.relu(self.up(self.two(x)))), kept


class GPT(nn.Module):
    def __init__(self, vocab_size, width, heads, layers, context):
        super().__init__()
        self.table, self.places = nn.Embedding(vocab_size, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab_size)

    def forward(self, tokens, past_key_values=None, use_cache=False):
        before = 0 if past_key_values is None else past_key_values[0][0].shape[2]
        places = torch.arange(before, before + tokens.shape[1], device=tokens.device)
        x, kept = self.table(tokens) + self.places(places), []
        for number, block in enumerate(self.blocks):
            x, own = block(x, None if past_key_values is None else past_key_values[number])
            kept.append(own)
        logits = self.head(self.norm(x))
        return (logits, kept) if use_cache else logits

    @torch.no_grad()
    def generate(self, tokens, count):
        past = None
        for _ in range(count):
            given = tokens if past is None else tokens[:, -1:]
            logits, new = self(given, past_key_values=past, use_cache=True)
            past = new
            tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], 1)
        return tokens
"""
WRONG = ("torch.cat([past[0], k], 2)", "torch.cat([0.7 * past[0], k], 2)")
STEPS = "language_model.cached-formula"


def test_wrong_steps_that_a_loop_of_the_file_makes_are_reported(tmp_path):
    assert broken(adapted(tmp_path, "GPT", edited(CODE, WRONG)), STEPS)


def test_right_steps_conform(tmp_path):
    assert broken(adapted(tmp_path, "GPT", CODE), STEPS) == []


@pytest.mark.proof
def test_wrong_steps_that_a_loop_makes_in_another_way_are_a_question(tmp_path):
    for other in (
        ("past is None else tokens[:, -1:]", "past is None else tokens"),
        ("            past = new\n", ""),
        ("past_key_values=past, use_cache", "past_key_values=past, attention_mask=1, use_cache"),
    ):
        (tmp_path / "own.py").write_text(edited(CODE, WRONG, other))
        assert "continued from a cache" in asked(f"{tmp_path / 'own.py'}:GPT")


IN_PLACE = (
    (
        "class Block(nn.Module):",
        "class KVCache:\n    def __init__(self):\n        self.held = None\n\n"
        "    def append(self, k, v):\n"
        "        if self.held is not None:\n"
        "            k, v = torch.cat([self.held[0], k], 2), torch.cat([self.held[1], v], 2)\n"
        "        self.held = k, v\n        return k, v\n\n\nclass Block(nn.Module):",
    ),
    (
        "            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)\n",
        "            k, v = past.append(k, v)\n",
    ),
    ("past_key_values[0][0].shape[2]", "past_key_values[0].length()"),
    (
        "        self.held = k, v\n",
        "        self.held = k, v\n        self.count = k.shape[2]\n",
    ),
    (
        "    def append(",
        "    def length(self):\n        return 0 if self.held is None else self.count\n\n"
        "    def append(",
    ),
    (
        "        past = None\n",
        "        past = [KVCache() for _ in self.blocks]\n        next_token = tokens\n",
    ),
    ("            given = tokens if past is None else tokens[:, -1:]\n", ""),
    (
        "            logits, new = self(given, past_key_values=past, use_cache=True)\n"
        "            past = new\n"
        "            tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], 1)\n",
        "            logits = self(next_token, past_key_values=past)\n"
        "            next_token = logits[:, -1:].argmax(-1)\n"
        "            tokens = torch.cat([tokens, next_token], 1)\n",
    ),
    ("past_key_values=None, use_cache=False", "past_key_values=None"),
    ("return (logits, kept) if use_cache else logits", "return logits"),
)
WRONG_IN_PLACE = ("torch.cat([self.held[0], k], 2)", "torch.cat([0.7 * self.held[0], k], 2)")


@pytest.mark.proof
def test_wrong_steps_that_change_a_cache_are_reported(tmp_path):
    right = edited(CODE, *IN_PLACE)
    assert broken(adapted(tmp_path, "GPT", right), STEPS) == []
    assert broken(adapted(tmp_path, "GPT", edited(right, WRONG_IN_PLACE)), STEPS)


def test_wrong_steps_without_a_loop_are_a_question(tmp_path):
    other = ("self(next_token, past_key_values=past)", "self(tokens, past_key_values=past)")
    (tmp_path / "own.py").write_text(edited(CODE, *IN_PLACE, WRONG_IN_PLACE, other))
    assert "continued from a cache" in asked(f"{tmp_path / 'own.py'}:GPT")
