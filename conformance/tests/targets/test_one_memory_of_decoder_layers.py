"""Decoder layers that are called with a value and a key: both are the memory."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

LAYERS = """
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, embed_size, heads):
        super().__init__()
        self.heads = heads
        self.values, self.keys, self.queries, self.fc_out = (
            nn.Linear(embed_size, embed_size) for _ in range(4)
        )

    def forward(self, values, keys, query, mask):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one, x in ((self.queries, query), (self.keys, keys), (self.values, values))
        )
        energy = q @ k.transpose(-2, -1)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        weights = torch.softmax(energy / q.shape[-1] ** 0.5, dim=3)
        return self.fc_out((weights @ v).transpose(1, 2).flatten(2))


class TransformerBlock(nn.Module):
    def __init__(self, embed_size, heads, dropout, forward_expansion):
        super().__init__()
        self.attention = SelfAttention(embed_size, heads)
        self.norm1, self.norm2 = nn.LayerNorm(embed_size), nn.LayerNorm(embed_size)
        self.feed_forward = nn.Sequential(
            nn.Linear(embed_size, forward_expansion * embed_size),
            nn.ReLU(),
            nn.Linear(forward_expansion * embed_size, embed_size),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, value, key, query, mask):
        x = self.dropout(self.norm1(self.attention(value, key, query, mask) + query))
        return self.dropout(self.norm2(self.feed_forward(x) + x))


class DecoderBlock(nn.Module):
    def __init__(self, embed_size, heads, forward_expansion, dropout):
        super().__init__()
        self.attention, self.norm = SelfAttention(embed_size, heads), nn.LayerNorm(embed_size)
        self.transformer_block = TransformerBlock(embed_size, heads, dropout, forward_expansion)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, value, key, src_mask, trg_mask):
        attention = self.attention(x, x, x, trg_mask)
        query = self.dropout(self.norm(attention + x))
        return self.transformer_block(value, key, query, src_mask)
"""

CLAUSES = ["decoder.layer-formula", "decoder.shapes"]


def test_value_and_key_of_a_decoder_layer_are_one_memory(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "DecoderBlock", LAYERS)
    assert any("value, key are one memory" in one for one in backend.assumed)
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, *CLAUSES) == []


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "self.transformer_block(value, key, query, src_mask)",
            "self.transformer_block(value, x, query, src_mask)",
        ),
        (
            "self.transformer_block(value, key, query, src_mask)",
            "self.transformer_block(value, key, query, trg_mask)",
        ),
        ("self.attention(x, x, x, trg_mask)", "self.attention(x, value, x, trg_mask)"),
        ("self.norm(attention + x)", "self.norm(attention)"),
    ],
)
def test_mistake_in_a_decoder_layer_of_value_and_key_does_not_pass(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, "DecoderBlock", LAYERS, right, wrong, *CLAUSES)
