"""A small decoder-only model, as users write them: tests edit its code."""

PLAIN_GPT = """
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
        scores = scores.masked_fill(later, float("-inf"))
        mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(b, t, width))

    def forward(self, x):
        x = x + self.attend(self.one(x))
        return x + self.down(F.relu(self.up(self.two(x))))


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
