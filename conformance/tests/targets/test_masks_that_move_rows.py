"""Masks in whose wrong shape a call answers with the rows of other samples: another is taken."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

SOURCE = '''
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    """Attention on (seq_len, batch, embed_dim); attn_mask (Q, K) is added to the scores."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.heads, self.width = num_heads, embed_dim // num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def forward(self, query, key, value, attn_mask=None):
        batch = query.size(1)
        q, k, v = (
            one(x).view(-1, batch, self.heads, self.width).transpose(0, 2)
            for one, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        scores = q @ k.mT / math.sqrt(self.width)
        if attn_mask is not None:
            scores = scores + attn_mask[None, None]
        x = (scores.softmax(-1) @ v).transpose(0, 2).contiguous()
        return self.out(x.view(-1, batch, self.heads * self.width))
'''
FORMULA = "multi_head_attention.formula"


def test_a_mask_of_pairs_is_no_mask_of_samples(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", SOURCE)
    style = backend.recipes["multi_head_attention"].call.styles["mask"]
    assert (style.shape, style.meaning) == ("per pair", "additive")


@pytest.mark.proof
def test_attention_with_such_a_mask_conforms_and_with_a_mistake_does_not(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "MultiHeadAttention", SOURCE), FORMULA) == []
    right, wrong = "scores + attn_mask[None, None]", "scores - attn_mask[None, None]"
    assert asked_or_broken(tmp_path, "MultiHeadAttention", SOURCE, right, wrong, FORMULA)
