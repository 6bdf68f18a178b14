"""Encoders of tokens whose number of heads is a number in the code of their attention."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt.reading import Unclear

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = 8
        self.size = width // self.heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (
            one(x)[..., : self.heads * self.size].view(b, n, self.heads, self.size).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        shares = (q @ k.mT / self.size**0.5).softmax(-1)
        return self.o((shares @ v).transpose(1, 2).reshape(b, n, -1))


class Layer(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.attention = Attention(width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ff = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.ff(x))


class BertEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, d_ff, num_layers):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(Layer(d_model, d_ff) for _ in range(num_layers))

    def forward(self, tokens):
        x = self.tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return x
"""
FORMULA = "encoder.formula"


def test_number_of_heads_that_a_part_assigns_is_that_of_the_encoder(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "BertEncoder", CODE)
    assert "heads=heads" in "\n".join((*backend.assumed, *backend.understood))  # type: ignore[attr-defined]
    assert broken(backend, FORMULA) == []


@pytest.mark.proof
def test_scale_that_such_an_attention_lacks_is_detected(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "BertEncoder", CODE.replace(" / self.size**0.5", "")), FORMULA)


HEADS = """
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        self.size, self.all = size, nn.Linear(width, 3 * size)

    def forward(self, x):
        q, k, v = self.all(x).unflatten(-1, (self.size, 3)).unbind(-1)
        return (q @ k.mT / self.size**0.5).softmax(-1) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(Head(d_model, d_model // num_heads) for _ in range(num_heads))
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], -1))
"""


@pytest.mark.proof
def test_interleaved_projections_of_each_head_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="no assignment"):
        adapted(tmp_path, "MultiHeadAttention", HEADS)
