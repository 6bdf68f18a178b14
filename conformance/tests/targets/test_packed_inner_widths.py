"""Inner widths of decoder-only models that are rounded up, where two matrices are packed."""

from mistaken_code import adapted, broken, edited

CODE = """
import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        inner = 16 * ((8 * width // 3 + 15) // 16)
        self.packed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.both, self.down = nn.Linear(width, 2 * inner), nn.Linear(inner, width)

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
        gate, up = self.both(self.two(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class GPT(nn.Module):
    def __init__(self, vocab_size, width, heads, layers, context):
        super().__init__()
        self.table, self.places = nn.Embedding(vocab_size, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab_size)

    def forward(self, tokens):
        x = self.table(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.blocks(x)))
"""
FORMULA = "language_model.formula"


def test_rounded_width_of_packed_matrices_is_measured(tmp_path):
    backend = adapted(tmp_path, "GPT", CODE)
    assert backend.limits.inner_multiple == 16
    assert broken(backend, FORMULA) == []


def test_mistake_next_to_a_rounded_width_is_reported(tmp_path):
    wrong = edited(CODE, ("/ q.shape[-1] ** 0.5", "/ width**0.5"))
    assert broken(adapted(tmp_path, "GPT", wrong), FORMULA)
