"""Attention with other scores, weights or values: a question for a design, a verdict otherwise."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt import Unclear

SOURCE = """
import math

import torch
from torch import nn
from torch.nn import functional as F


def turned(x):
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[2])[:, None] * 10000.0 ** -(torch.arange(half) / half)
    cos, sin, (a, b) = angles.cos().to(x), angles.sin().to(x), x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads, self.width = n_heads, d_model // n_heads
        self.q_proj, self.k_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v_proj, self.out_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            linear(x).unflatten(-1, (self.heads, self.width)).transpose(1, 2)
            for linear, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        s = q @ k.mT / math.sqrt(self.width)
        if mask is not None:
            s = s.masked_fill(mask == 0, -torch.inf)
        w = s.softmax(-1)
        return self.out_proj((w @ v).transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = self.norm1(x + self.self_attn(x, x, x, mask))
        return self.norm2(x + self.ff(x))
"""
SCORES, WEIGHTS = "s = q @ k.mT / math.sqrt(self.width)", "w = s.softmax(-1)"
COSINES = (SCORES, "s = 10.0 * F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT")
SIGMOIDS = (WEIGHTS, "w = torch.sigmoid(s - math.log(s.shape[-1]))")
RECTIFIED = (WEIGHTS, "w = s.relu() / s.shape[-1]")
PLUS_ONE = (WEIGHTS, "w = F.pad(s, (0, 1)).softmax(-1)[..., :-1]")
SQUARES = (SCORES, "s = -torch.cdist(q, k) ** 2 / math.sqrt(self.width)")
DISTANCES = (SCORES, "s = -torch.cdist(q, k) / math.sqrt(self.width)")
SAMPLED = (
    WEIGHTS,
    "w = s.softmax(-1)\n        chosen = torch.randperm(w.shape[-1])[:9]\n"
    "        w = torch.zeros_like(w).index_copy(-1, chosen, w[..., chosen])",
)
VALUES = (SCORES, f"q, k, v = turned(q), turned(k), turned(v)\n        {SCORES}")


def changed(*pairs: tuple[str, str]) -> str:
    """Return the source with the second text of each pair in the place of the first."""
    source = SOURCE
    for old, new in pairs:
        assert source.count(old) == 1
        source = source.replace(old, new)
    return source


@share(2, rest=1)
@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("MultiHeadAttention", COSINES, "cosine attention"),
        pytest.param("EncoderLayer", COSINES, "cosine attention", marks=pytest.mark.proof),
        ("MultiHeadAttention", VALUES, "turns its values by rotary positions"),
        ("MultiHeadAttention", PLUS_ONE, "softmax plus one"),
        ("MultiHeadAttention", SAMPLED, "draws random numbers in evaluation"),
        pytest.param("EncoderLayer", PLUS_ONE, "softmax plus one", marks=pytest.mark.proof),
        ("MultiHeadAttention", SQUARES, "squared distances"),
        pytest.param("MultiHeadAttention", DISTANCES, "distances", marks=pytest.mark.proof),
        pytest.param("EncoderLayer", SIGMOIDS, "it computes no softmax", marks=pytest.mark.proof),
        pytest.param(
            "MultiHeadAttention", RECTIFIED, "it computes no softmax", marks=pytest.mark.proof
        ),
        pytest.param("EncoderLayer", RECTIFIED, "it computes no softmax", marks=pytest.mark.proof),
        pytest.param("EncoderLayer", VALUES, "turns its values", marks=pytest.mark.proof),
    ],
)
def test_attention_of_another_design_is_a_question_that_says_so(
    name: str, change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(Unclear, match=said):
        adapted(tmp_path, name, changed(change))


@pytest.mark.proof
def test_a_bias_without_a_place_hides_no_cosine_attention(tmp_path: Path) -> None:
    """In Swin v2 the bias of the queries is a parameter beside the projection."""
    source = changed(
        COSINES,
        (
            "self.q_proj, self.k_proj =",
            "self.q_bias = nn.Parameter(torch.zeros(d_model))\n        self.q_proj, self.k_proj =",
        ),
        ("linear(x).unflatten", "(linear(x) + plus).unflatten"),
        (
            "for linear, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))",
            "for linear, x, plus in ((self.q_proj, query, self.q_bias), "
            "(self.k_proj, key, 0), (self.v_proj, value, 0))",
        ),
    )
    with pytest.raises(Unclear, match="cosine attention"):
        adapted(tmp_path, "MultiHeadAttention", source)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param((WEIGHTS, "w = s"), marks=pytest.mark.proof),
        pytest.param((WEIGHTS, "w = s / s.sum(-1, keepdim=True)"), marks=pytest.mark.proof),
        pytest.param((SCORES, "s = q @ k.mT"), marks=pytest.mark.proof),
        pytest.param((SCORES, "s = q @ v.mT / math.sqrt(self.width)"), marks=pytest.mark.proof),
    ],
)
def test_mistake_in_scores_or_weights_is_a_violation(change: tuple[str, str], tmp_path: Path):
    backend = adapted(tmp_path, "MultiHeadAttention", changed(change))
    assert broken(backend, "multi_head_attention.formula")


@pytest.mark.proof
def test_turned_queries_and_keys_alone_conform(tmp_path: Path) -> None:
    change = (SCORES, f"q, k = turned(q), turned(k)\n        {SCORES}")
    backend = adapted(tmp_path, "MultiHeadAttention", changed(change))
    assert not broken(backend, "multi_head_attention.formula")


FUNCTION = """
def attention(query, key, value, mask=None):
    s = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        s = s.masked_fill(~mask, float("-inf"))
    w = s.softmax(-1)
    return w @ value
"""


def test_function_without_a_softmax_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="it computes no softmax"):
        adapted(tmp_path, "attention", FUNCTION.replace("s.softmax(-1)", "s.relu().square()"))


def test_function_that_forgets_the_softmax_is_a_violation(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "attention", FUNCTION.replace("s.softmax(-1)", "s"))
    assert broken(backend, "attention.formula")


@pytest.mark.parametrize("returned", ["query", "value", "value.mean(-2, keepdim=True) + query"])
def test_function_that_does_not_depend_on_keys_is_a_violation(returned: str, tmp_path: Path):
    source = f"def attention(query, key, value, mask=None):\n    return {returned}\n"
    assert broken(adapted(tmp_path, "attention", source), "attention.formula")


@pytest.mark.proof
def test_scale_that_is_declared_is_judged_by_that(tmp_path: Path) -> None:
    """A part of a name is enough where the declared factor gives the numbers, and no other one."""
    source = changed((SCORES, "s = 0.0625 * q @ k.mT"))
    source = source.replace("class MultiHeadAttention", "class TinyAttention")
    declared = {"choices": {"score_scale": 0.0625}}
    backend = adapted(tmp_path, "TinyAttention", source, **declared)
    assert broken(backend, "multi_head_attention.formula") == []
    with pytest.raises(Unclear, match="whose formula its numbers do not give"):
        adapted(tmp_path, "TinyAttention", source)
    with pytest.raises(Unclear, match="whose formula its numbers do not give"):
        adapted(tmp_path, "TinyAttention", source, choices={"score_scale": 0.07})


@pytest.mark.proof
def test_dropout_that_is_never_off_is_no_sampling(tmp_path: Path) -> None:
    backend = adapted(
        tmp_path, "MultiHeadAttention", changed((WEIGHTS, "w = F.dropout(s.softmax(-1), 0.5)"))
    )
    assert broken(backend, "multi_head_attention.formula")
