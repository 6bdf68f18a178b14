"""Attention that is causal by itself, and takes a mask of padding besides."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

SOURCE = """
import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.value, self.out = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, key, value, pad_mask=None):
        q, k, v = (
            layer(one).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, one in ((self.query, query), (self.key, key), (self.value, value))
        )
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        scores = scores + torch.full(scores.shape[-2:], float("-inf")).triu(1)
        if pad_mask is not None:
            pad_mask = pad_mask.view(len(query), 1, 1, -1).bool()
            scores = scores.masked_fill(~pad_mask, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
FORMULA = "multi_head_attention.formula"


@share(2, rest=1)
@pytest.mark.parametrize("hidden", ["~pad_mask", "pad_mask"])
def test_its_mask_is_read_by_the_keys_that_it_hides(hidden: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "CausalAttention", SOURCE.replace("~pad_mask", hidden))
    (style,) = backend.recipes["multi_head_attention"].call.styles.values()
    assert style.meaning == ("keep" if hidden == "~pad_mask" else "blocks")
    assert broken(backend, FORMULA) == []


@pytest.mark.proof
def test_a_mistake_in_its_order_is_not_laid_on_positions(tmp_path: Path) -> None:
    """Positions by which the heads and not the steps are turned change no score."""
    backend = adapted(tmp_path, "CausalAttention", SOURCE.replace(".triu(1)", ".triu(2)"))
    assert backend.choices.get("attention_rotary", "none") == "none"
    assert broken(backend, FORMULA)
