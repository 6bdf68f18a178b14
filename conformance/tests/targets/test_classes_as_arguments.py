"""Layers that are built with the classes of their parts."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.split(self.q(query)), self.split(self.k(key)), self.split(self.v(value))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, attention_cls, feed_forward_cls, norm_cls):
        super().__init__()
        self.attention = attention_cls(d_model, heads)
        self.net = feed_forward_cls(d_model, d_ff)
        self.norm_1, self.norm_2 = norm_cls(d_model), norm_cls(d_model)

    def forward(self, x, mask=None):
        x = self.norm_1(x + self.attention(x, x, x, mask))
        return self.norm_2(x + self.net(x))
"""
FORMULA = "encoder.layer-formula"


def test_layer_is_built_with_the_classes_of_its_file(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "EncoderLayer", CODE)
    assert broken(backend, FORMULA) == []
    said = "\n".join(backend.assumed)
    assert "attention_cls is the class MultiHeadAttention" in said
    assert "feed_forward_cls is the class FeedForward" in said


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [("torch.relu(self.up(x))", "self.up(x)"), ("x + self.net(x)", "self.net(x)")],
)
def test_mistakes_in_its_parts_do_not_pass(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "EncoderLayer", CODE, right, wrong, FORMULA)


def test_several_classes_that_may_be_meant_are_a_question(tmp_path: Path) -> None:
    other = CODE.split("class FeedForward")[0].split("class MultiHeadAttention")[1]
    other = f"class SelfAttention{other.replace('-1e9', '-1e4')}"
    with pytest.raises(Unclear, match="nothing says what attention_cls is"):
        adapted(tmp_path, "EncoderLayer", f"{CODE}\n\n{other}")
