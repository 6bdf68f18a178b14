"""Attention that has no output projection: one is put behind it, and the rest is judged."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

SEVERAL_HEADS = """
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.heads, self.size = num_heads, hidden_size // num_heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states, attention_mask=None):
        batch, length, width = hidden_states.shape
        q, k, v = (
            one(hidden_states).view(batch, length, self.heads, self.size).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(-1, -2) / self.size**0.5
        if attention_mask is not None:
            scores = scores + attention_mask
        weights = scores.softmax(dim=-1)
        context = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        return context, weights
"""

ONE_HEAD = """
from torch import nn


class SingleHeadSelfAttention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.to_q = nn.Linear(d_model, d_model, bias=False)
        self.to_k = nn.Linear(d_model, d_model, bias=False)
        self.to_v = nn.Linear(d_model, d_model, bias=False)
        self.scale = d_model**-0.5

    def forward(self, x, mask=None):
        scores = self.to_q(x) @ self.to_k(x).transpose(1, 2) * self.scale
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return scores.softmax(-1) @ self.to_v(x)
"""

LISTED_HEADS = """
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, d_model, width):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_model, width, bias=False) for _ in range(3))

    def forward(self, x, mask=None):
        q, k, v = self.q(x), self.k(x), self.v(x)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class ListedSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        assert embed_dim % num_heads == 0
        self.heads = nn.ModuleList(
            Head(embed_dim, embed_dim // num_heads) for _ in range(num_heads)
        )

    def forward(self, x, mask=None):
        return torch.cat([one(x, mask) for one in self.heads], dim=-1)
"""

SOUND = {
    "SelfAttention": SEVERAL_HEADS,
    "ListedSelfAttention": LISTED_HEADS,
    "SingleHeadSelfAttention": ONE_HEAD,
}

WRONG = [
    ("SelfAttention", "/ self.size**0.5", "/ width**0.5"),
    ("SelfAttention", "softmax(dim=-1)", "softmax(dim=-2)"),
    ("SelfAttention", "(weights @ v).transpose(1, 2)", "(weights @ v)"),
    ("SelfAttention", "scores + attention_mask", "scores"),
    ("SelfAttention", "return context, weights", "return context + hidden_states, weights"),
    ("ListedSelfAttention", "attn_mask=mask", "attn_mask=None"),
    ("ListedSelfAttention", "(q, k, v, attn_mask=mask", "(q, k, k, attn_mask=mask"),
    ("ListedSelfAttention", "attn_mask=mask)", "attn_mask=mask, scale=1.0)"),
    ("SingleHeadSelfAttention", "**-0.5", "**-1"),
    ("SingleHeadSelfAttention", "* self.scale", ""),
    ("SingleHeadSelfAttention", "@ self.to_v(x)", "@ x"),
    ("SingleHeadSelfAttention", "@ self.to_v(x)", "@ self.to_v(x) + self.to_q(x)"),
]


CLAUSES = [
    f"multi_head_attention.{one}" for one in ("formula", "masked-keys-ignored", "heads-are-slices")
]


@pytest.mark.parametrize("name", SOUND)
def test_attention_without_output_projection_is_judged_with_one_behind(
    tmp_path: Path, name: str
) -> None:
    backend = adapted(tmp_path, name, SOUND[name])
    assert any("no output projection" in one for one in backend.assumed)
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, *CLAUSES) == []


@share(2)
@pytest.mark.parametrize("name", SOUND)
def test_strict_asks_for_the_output_projection(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unclear, match="no multi head attention can be made"):
        adapted(tmp_path, name, SOUND[name], strict=True)


@pytest.mark.proof
@share(12)
@pytest.mark.parametrize(("name", "right", "wrong"), WRONG)
def test_mistake_in_attention_without_output_projection_does_not_pass(
    tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, name, SOUND[name], right, wrong, *CLAUSES)


@pytest.mark.proof
def test_projection_that_is_held_and_not_used_is_not_replaced(tmp_path: Path) -> None:
    held = "self.value = nn.Linear(hidden_size, hidden_size)\n"
    source = SEVERAL_HEADS.replace(
        held, f"{held}        self.dense = nn.Linear(hidden_size, hidden_size)\n"
    )
    backend = adapted(tmp_path, "SelfAttention", source)
    assert broken(backend, *CLAUSES)


def test_a_convolution_of_all_projections_is_no_attention_without_an_output(tmp_path: Path) -> None:
    code = """
from torch import nn


class SpatialSelfAttention(nn.Module):
    def __init__(self, channels, num_heads):
        super().__init__()
        self.norm = nn.GroupNorm(1, channels)
        self.qkv, self.heads = nn.Conv2d(channels, channels * 3, 1), num_heads
        self.proj = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        maps = self.qkv(self.norm(x)).flatten(2).unflatten(1, (3, self.heads, -1))
        q, k, v = maps.unbind(1)
        weights = (q.mT @ k * q.shape[2] ** -0.5).softmax(dim=-1)
        return x + self.proj((v @ weights.mT).reshape(x.shape))
"""
    with pytest.raises(Unclear, match=r"no place for norm\.weight"):
        adapted(tmp_path, "SpatialSelfAttention", code)
