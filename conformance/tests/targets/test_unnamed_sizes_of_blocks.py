"""Blocks of decoder-only models with an argument that no name explains."""

from pathlib import Path

from mistaken_code import adapted, asked_or_broken

BLOCK = """
import torch
from torch import nn
from torch.nn import functional as F


class DecoderBlock(nn.Module):
    def __init__(self, cl, n_heads, emb_dim):
        super().__init__()
        self.n_heads = n_heads
        self.norm1, self.norm2 = nn.LayerNorm(emb_dim), nn.LayerNorm(emb_dim)
        self.joint = nn.Linear(emb_dim, 3 * emb_dim, bias=False)
        self.merge = nn.Linear(emb_dim, emb_dim)
        self.rise, self.fall = nn.Linear(emb_dim, 4 * emb_dim), nn.Linear(4 * emb_dim, emb_dim)
        self.register_buffer("seen", torch.ones(cl, cl).tril())

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for one in self.joint(self.norm1(x)).chunk(3, dim=-1)
        )
        merged = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(merged.transpose(1, 2).flatten(2))
        return x + self.fall(F.gelu(self.rise(self.norm2(x))))
"""
WRONG = "x + self.merge(merged", "self.merge(merged"


def test_an_argument_of_a_block_is_no_vocabulary(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "DecoderBlock", BLOCK)
    assert "cl=sizes.max_length" in backend.adapter.building.expression


def test_a_mistake_in_such_a_block_is_detected(tmp_path: Path) -> None:
    assert asked_or_broken(tmp_path, "DecoderBlock", BLOCK, *WRONG, "language_model.formula")
