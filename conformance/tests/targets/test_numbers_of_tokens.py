"""Attention whose argument num_tokens is a length, and whose input is called tokens."""

import pytest
from mistaken_code import adapted, broken, edited

HEADS = """
import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, d_in, d_out, num_tokens, num_heads):
        super().__init__()
        self.num_heads, self.width = num_heads, d_out // num_heads
        self.query = nn.Linear(d_in, d_out, bias=False)
        self.key = nn.Linear(d_in, d_out, bias=False)
        self.value = nn.Linear(d_in, d_out, bias=False)
        self.out = nn.Linear(d_out, d_out)
        self.register_buffer("later", torch.ones(num_tokens, num_tokens).triu(1).bool())

    def forward(self, tokens, return_weights=False):
        b, n, _ = tokens.shape
        q, k, v = (
            one(tokens).view(b, n, self.num_heads, self.width).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        scores = (q @ k.mT).masked_fill(self.later[:n, :n], -torch.inf)
        weights = (scores / self.width**0.5).softmax(dim=-1)
        mixed = self.out((weights @ v).transpose(1, 2).reshape(b, n, -1))
        return (mixed, weights) if return_weights else mixed
"""
NAME = "CausalSelfAttention"
CLAUSES = ("multi_head_attention.formula", "multi_head_attention.causality")


def test_number_of_tokens_is_the_length_of_a_causal_mask(tmp_path):
    backend = adapted(tmp_path, NAME, HEADS)
    assert not broken(backend, *CLAUSES)
    assert "hides later positions by itself" in " ".join(backend.understood)


@pytest.mark.parametrize("diagonal", ["triu(2)", "tril(-1)"])
def test_mistakes_in_such_a_mask_are_detected(tmp_path, diagonal):
    assert broken(adapted(tmp_path, NAME, edited(HEADS, ("triu(1)", diagonal))), *CLAUSES)
