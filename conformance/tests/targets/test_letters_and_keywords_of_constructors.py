"""Widths that single letters name, and keywords that a constructor hands on to no part."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

CODE = """
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, q: int, v: int, h: int):
        super().__init__()
        self.h, self.q = h, q
        self.W_q, self.W_k = nn.Linear(d_model, q * h), nn.Linear(d_model, q * h)
        self.W_v, self.W_o = nn.Linear(d_model, v * h), nn.Linear(v * h, d_model)

    def forward(self, query, key, value):
        q, k, v = (
            one.unflatten(-1, (self.h, -1)).transpose(1, 2)
            for one in (self.W_q(query), self.W_k(key), self.W_v(value))
        )
        weights = (q @ k.mT / self.q**0.5).softmax(dim=-1)
        return self.W_o((weights @ v).transpose(1, 2).flatten(2))
"""
BY_SIDES = edited(
    CODE,
    ("d_model: int, q: int, v: int, h: int", "kv_dim: int, q_dim: int, num_heads: int"),
    ("self.h, self.q = h, q", "self.h, self.q = num_heads, q_dim // num_heads"),
    (
        "nn.Linear(d_model, q * h), nn.Linear(d_model, q * h)",
        "nn.Linear(q_dim, q_dim), nn.Linear(kv_dim, q_dim)",
    ),
    (
        "nn.Linear(d_model, v * h), nn.Linear(v * h, d_model)",
        "nn.Linear(kv_dim, q_dim), nn.Linear(q_dim, q_dim)",
    ),
)
LAYER = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int = 32):
        super().__init__()
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.outer(self.inner(x).relu())


class EncoderLayer(nn.Module):
    def __init__(self, d_model: int, h: int, **kwargs):
        super().__init__(**kwargs)
        self.attention = nn.MultiheadAttention(d_model, h, batch_first=True)
        self.network = FeedForward(d_model, **kwargs)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
        return self.norm2(x + self.network(x))
"""
FORMULA = "multi_head_attention.formula"


@pytest.mark.parametrize("code", [CODE, BY_SIDES])
def test_widths_by_letters_and_sides_are_read(tmp_path: Path, code: str) -> None:
    assert not broken(adapted(tmp_path, "MultiHeadAttention", code), FORMULA)


@pytest.mark.parametrize("code", [CODE, BY_SIDES])
def test_wrong_scale_of_such_attention_is_detected(tmp_path: Path, code: str) -> None:
    mistaken = edited(code, ("self.q**0.5", "query.shape[1] ** 0.5"))
    assert broken(adapted(tmp_path, "MultiHeadAttention", mistaken), FORMULA)


def test_keywords_that_go_to_a_module_of_torch_are_none_of_its_parts(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "EncoderLayer", LAYER), "encoder.layer-formula")


def test_missing_residual_of_such_a_layer_is_detected(tmp_path: Path) -> None:
    mistaken = edited(LAYER, ("self.norm2(x + self.network(x))", "self.norm2(self.network(x))"))
    assert broken(adapted(tmp_path, "EncoderLayer", mistaken), "encoder.layer-formula")


SHARED = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, dim, mult=4):
        super().__init__()
        dim_inner = int(mult * dim * 2 / 3)
        self.both = nn.Linear(dim, dim_inner * 2)
        self.outer = nn.Linear(dim_inner, dim)

    def forward(self, x):
        inner, gate = self.both(x).chunk(2, dim=-1)
        return self.outer(nn.functional.gelu(gate) * inner)
"""


def test_two_thirds_of_a_ratio_are_given_three_halves_of_it(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "FeedForward", SHARED), "feed_forward.formula")


def test_mistake_in_such_a_network_is_detected(tmp_path: Path) -> None:
    mistaken = edited(SHARED, ("gelu(gate) * inner", "gelu(gate) * gate"))
    assert broken(adapted(tmp_path, "FeedForward", mistaken, anyway=True), "feed_forward.formula")
