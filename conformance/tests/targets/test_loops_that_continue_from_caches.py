"""Steps with a cache that are wrong: a loop of the file shows that they are called so."""

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


def test_wrong_steps_that_a_loop_makes_in_another_way_are_a_question(tmp_path):
    for other in (
        ("past is None else tokens[:, -1:]", "past is None else tokens"),
        ("            past = new\n", ""),
        ("past_key_values=past, use_cache", "past_key_values=past, attention_mask=1, use_cache"),
    ):
        (tmp_path / "own.py").write_text(edited(CODE, WRONG, other))
        assert "continued from a cache" in asked(f"{tmp_path / 'own.py'}:GPT")
