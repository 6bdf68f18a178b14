"""Attention for generation that writes keys and values into a cache of its own."""

from pathlib import Path

import pytest
from mistaken_code import adapted

import attentest
from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, max_batch_size: int = 8):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.cache_k = torch.zeros(max_batch_size, 64, width)
        self.cache_v = torch.zeros(max_batch_size, 64, width)
        self.weights = None

    def forward(self, x, start_pos: int, mask=None):
        b, t, c = x.shape
        self.cache_k, self.cache_v = self.cache_k.to(x), self.cache_v.to(x)
        self.cache_k[:b, start_pos : start_pos + t] = self.k(x)
        self.cache_v[:b, start_pos : start_pos + t] = self.v(x)
        k, v = self.cache_k[:b, : start_pos + t], self.cache_v[:b, : start_pos + t]
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in (self.q(x), k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores + mask
        self.weights = scores.softmax(-1)
        return self.o((self.weights @ v).transpose(1, 2).reshape(b, t, c))
"""


def test_cache_is_asked_about_whatever_is_given(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="into cache_k and cache_v, a cache of a fixed size"):
        adapted(tmp_path, "Attention", CODE, given={"start_pos": 0})


def test_whole_number_is_tried_as_zero(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"it writes .* into cache_k and cache_v"):
        adapted(tmp_path, "Attention", CODE)


def test_weights_that_are_kept_are_no_cache(tmp_path: Path) -> None:
    plain = CODE.replace("self.cache_k[:b, start_pos : start_pos + t] = ", "self.last_k = ")
    plain = plain.replace("self.cache_v[:b, start_pos : start_pos + t] = ", "self.last_v = ")
    plain = plain.replace(
        "self.cache_k[:b, : start_pos + t], self.cache_v[:b, : start_pos + t]",
        "self.last_k, self.last_v",
    )
    assert adapted(tmp_path, "Attention", plain, given={"start_pos": 0}).fits


LAYER = """

class Settings:
    width = 64
    heads = 4
    inner = 96
    max_batch_size = 8


class EncoderLayer(nn.Module):
    def __init__(self, args: Settings):
        super().__init__()
        self.attention = Attention(args.width, args.heads, args.max_batch_size)
        self.norm1, self.norm2 = nn.LayerNorm(args.width), nn.LayerNorm(args.width)
        self.up, self.down = nn.Linear(args.width, args.inner), nn.Linear(args.inner, args.width)

    def forward(self, x, start_pos: int, mask=None):
        x = x + self.attention(self.norm1(x), start_pos, mask)
        return x + self.down(self.up(self.norm2(x)).relu())
"""


def test_layers_with_such_attention_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"into attention.cache_k and attention.cache_v"):
        adapted(tmp_path, "EncoderLayer", CODE + LAYER)


BUFFERED = """
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, width: int, inner: int, max_batch_size: int = 8):
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.register_buffer("zeros", torch.zeros(max_batch_size, 1, width), persistent=False)

    def forward(self, x):
        return self.down(self.up(x + self.zeros[: len(x)]).relu())
"""


def test_a_number_of_sentences_is_that_of_the_examples(tmp_path: Path) -> None:
    """A buffer for eight sentences is too small for the largest example."""
    (tmp_path / "own.py").write_text(BUFFERED, encoding="utf-8")
    found = attentest.adapted(f"{tmp_path / 'own.py'}:FeedForward")
    assert "max_batch_size=64" in "\n".join(found.understood)
