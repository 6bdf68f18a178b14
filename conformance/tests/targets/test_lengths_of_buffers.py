"""Code that holds a mask or angles of a fixed length: longer inputs are no examples."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

SOURCE = """
import torch
from torch import nn


class SelfAttn(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.register_buffer("tril", torch.tril(torch.ones(256, 256)))

    def forward(self, x):
        b, t, d = x.shape
        heads = self.qkv(x).view(b, t, 3, self.n_heads, d // self.n_heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (d // self.n_heads) ** 0.5
        scores = scores.masked_fill(self.tril[:t, :t] == 0, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = SelfAttn(d_model, n_heads)
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.down(torch.relu(self.up(self.second(x))))
"""
PARTS = {
    "SelfAttn": "multi_head_attention.formula",
    "EncoderLayer": "encoder.layer-formula",
}


@pytest.mark.parametrize("name", PARTS)
def test_buffer_of_a_fixed_length_is_a_limit(name: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, name, SOURCE)
    assert backend.limits.length == 256
    assert not broken(backend, PARTS[name])


def test_buffer_of_the_width_is_an_error(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "SelfAttn", SOURCE.replace("256, 256", "d_model, d_model"))
    assert broken(backend, PARTS["SelfAttn"])


def test_mask_of_a_fixed_length_that_shows_the_next_key_is_a_violation(tmp_path: Path) -> None:
    source = SOURCE.replace("torch.tril(torch.ones(256, 256))", "torch.ones(256, 256).tril(1)")
    backend = adapted(tmp_path, "SelfAttn", source)
    assert broken(backend, PARTS["SelfAttn"])
