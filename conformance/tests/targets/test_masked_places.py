"""Encoders that take the positions of masked tokens, and choose their rows behind the layers."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken

GUESSES = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm = nn.LayerNorm(width)

    def forward(self, x, blocked):
        q, k, v = (
            linear(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for linear in (self.q, self.k, self.v)
        )
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(blocked[:, None], -1e9)
        return self.norm(x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)))


class Network(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + self.down(nn.functional.gelu(self.up(x))))


class Block(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention, self.network = Attention(width, heads), Network(width, inner)

    def forward(self, x, blocked):
        return self.network(self.attention(x, blocked))


class BERT(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, max_len, n_segments):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
        self.segments, self.norm = nn.Embedding(n_segments, d_model), nn.LayerNorm(d_model)
        self.layers = nn.ModuleList(Block(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.guess, self.pair = nn.Linear(d_model, vocab_size), nn.Linear(d_model, 2)

    def forward(self, input_ids, segment_ids, masked_pos):
        x = self.tokens(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        x = self.norm(x + self.segments(segment_ids))
        blocked = input_ids.eq(0)[:, None].expand(-1, input_ids.shape[1], -1)
        for layer in self.layers:
            x = layer(x, blocked)
        chosen = x.gather(1, masked_pos[:, :, None].expand(-1, -1, x.shape[-1]))
        return self.guess(chosen), self.pair(x[:, 0])
"""


@pytest.mark.proof
def test_layers_of_an_encoder_that_guesses_masked_tokens_are_judged(tmp_path):
    backend = adapted(tmp_path, "BERT", GUESSES)
    assert not broken(backend, "encoder.formula", "encoder.padding-invariance")
    for right, wrong in (("/ q.shape[-1] ** 0.5", ""), ("x + self.down(", "self.down(")):
        assert asked_or_broken(tmp_path, "BERT", GUESSES, right, wrong, "encoder.formula")
