"""Layers in a plain list, which torch does not register: the question says so."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = self.norm1(x + self.attention(x, x, x)[0])
        return self.norm2(x + self.down(torch.relu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self, d_model, heads, d_ff, num_layers):
        super().__init__()
        made = [EncoderLayer(d_model, heads, d_ff) for _ in range(num_layers)]
        self.layers = nn.ModuleList(made)
        self.kept = made

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class BertModel(nn.Module):
    def __init__(self, vocab_size, d_model, heads, d_ff, num_layers):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        made = [EncoderLayer(d_model, heads, d_ff) for _ in range(num_layers)]
        self.layers = nn.ModuleList(made)

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x)
        return x
"""
PLAIN = CODE.replace("nn.ModuleList(made)", "made")


def test_list_of_modules_that_are_registered_too_is_no_question(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "Encoder", CODE), "encoder.depth-counts") == []


@pytest.mark.parametrize("name", ["Encoder", "BertModel"])
def test_layers_in_a_plain_list_are_a_question_that_says_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=f"layers of {name} is a plain list, which torch does not"):
        adapted(tmp_path, name, PLAIN)
