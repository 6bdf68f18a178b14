"""Attention with norms of queries and keys, and attention that turns a part of each head."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def turned(x, cos, sin):
    return x * cos + rotate_half(x) * sin


class NormedAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, num_kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = num_heads, num_kv_heads, hidden_size // num_heads
        self.q_proj = nn.Linear(hidden_size, num_heads * self.size, bias=False)
        self.k_proj = nn.Linear(hidden_size, num_kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(hidden_size, num_kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(num_heads * self.size, hidden_size, bias=False)
        self.q_norm, self.k_norm = Norm(self.size), Norm(self.size)

    def forward(self, x, position_embeddings, mask=None):
        cos, sin = (one.unsqueeze(1) for one in position_embeddings)
        shape = (*x.shape[:-1], -1, self.size)
        q = self.q_norm(self.q_proj(x).view(shape)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(shape)).transpose(1, 2)
        v = self.v_proj(x).view(shape).transpose(1, 2)
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        k = k.repeat_interleave(self.heads // self.kv_heads, dim=1)
        v = v.repeat_interleave(self.heads // self.kv_heads, dim=1)
        scores = q @ k.transpose(-1, -2) * self.size**-0.5
        if mask is not None:
            scores = scores + mask
        return self.o_proj((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))
"""

WHOLE = (
    CODE.replace(
        "Norm(self.size), Norm(self.size)",
        "Norm(num_heads * self.size), Norm(num_kv_heads * self.size)",
    )
    .replace("self.q_norm(self.q_proj(x).view(shape))", "self.q_norm(self.q_proj(x)).view(shape)")
    .replace("self.k_norm(self.k_proj(x).view(shape))", "self.k_norm(self.k_proj(x)).view(shape)")
)
LATE = (
    CODE.replace("self.q_norm(self.q_proj(x).view(shape))", "self.q_proj(x).view(shape)")
    .replace("self.k_norm(self.k_proj(x).view(shape))", "self.k_proj(x).view(shape)")
    .replace(
        "= turned(q, cos, sin), turned(k, cos, sin)",
        "= self.q_norm(turned(q, cos, sin)), self.k_norm(turned(k, cos, sin))",
    )
)
ONE_PLUS = CODE.replace("self.weight * x", "(1 + self.weight) * x").replace(
    "torch.ones", "torch.zeros"
)
QUARTER = (
    CODE.replace("self.q_norm(self.q_proj(x).view(shape))", "self.q_proj(x).view(shape)")
    .replace("self.k_norm(self.k_proj(x).view(shape))", "self.k_proj(x).view(shape)")
    .replace("        self.q_norm, self.k_norm = Norm(self.size), Norm(self.size)\n", "")
    .replace(
        "        q, k = turned(q, cos, sin), turned(k, cos, sin)\n",
        "        width = int(0.25 * self.size)\n"
        "        q = torch.cat([turned(q[..., :width], cos, sin), q[..., width:]], dim=-1)\n"
        "        k = torch.cat([turned(k[..., :width], cos, sin), k[..., width:]], dim=-1)\n",
    )
)
"""Its first columns alone are turned; a quarter of two columns is none."""

CLAUSES = [
    f"multi_head_attention.{one}"
    for one in (
        "formula",
        "rotary",
        "query-key-norm",
        "query-key-norm-place",
        "masked-keys-ignored",
    )
]

SOUND = {
    "each head": (CODE, {"query_key_norm": "per-head", "query_key_norm_place": "before-rotation"}),
    "all heads": (WHOLE, {"query_key_norm": "whole-projection"}),
    "after rotation": (LATE, {"query_key_norm_place": "after-rotation"}),
    "one plus weight": (ONE_PLUS, {"rms_weight": "one-plus-weight"}),
    "a larger epsilon": (CODE.replace("1e-6", "1e-5"), {"rms_epsilon": 1e-5}),
    "a half": (QUARTER.replace("0.25", "0.5"), {"rotary_width": 0.5, "rotary_pairs": "halves"}),
    "a quarter": (QUARTER, {"rotary_width": 0.25, "rotary_pairs": "halves"}),
}


@share(12, rest=1)
@pytest.mark.parametrize("case", list(SOUND))
def test_norms_of_queries_and_keys_and_turned_parts_are_judged(tmp_path: Path, case: str) -> None:
    code, choices = SOUND[case]
    backend = adapted(tmp_path, "NormedAttention", code)
    shown = {name: backend.choices.get(name, "before-rotation") for name in choices}
    assert shown == choices
    assert broken(backend, *CLAUSES) == []


MISTAKES = {
    "no scale": (CODE, " * self.size**-0.5", ""),
    "scale of the model": (CODE, "self.size**-0.5", "x.size(-1)**-0.5"),
    "keys not turned": (CODE, "turned(k, cos, sin)", "k"),
    "turned twice": (
        CODE,
        "turned(q, cos, sin), turned(k, cos, sin)",
        "(turned(turned(one, cos, sin), cos, sin) for one in (q, k))",
    ),
    "no scale of a part": (QUARTER, " * self.size**-0.5", ""),
    "softmax over queries": (CODE, "softmax(dim=-1)", "softmax(dim=-2)"),
}


@pytest.mark.proof
@share(8)
@pytest.mark.parametrize("case", list(MISTAKES))
def test_a_mistake_beside_given_positions_is_a_violation(tmp_path: Path, case: str) -> None:
    code, right, wrong = MISTAKES[case]
    assert right in code
    backend = adapted(tmp_path, "NormedAttention", code.replace(right, wrong))
    assert any("with one mistake" in one for one in backend.assumed)
    assert broken(backend, *CLAUSES)


@pytest.mark.proof
def test_values_that_are_turned_by_given_positions_are_a_question(tmp_path: Path) -> None:
    code = CODE.replace(
        "k = turned(q, cos, sin), turned(k, cos, sin)",
        "k, v = turned(q, cos, sin), turned(k, cos, sin), turned(v, cos, sin)",
    )
    assert code != CODE
    with pytest.raises(Unclear, match="turns its values by rotary positions"):
        adapted(tmp_path, "NormedAttention", code)


@pytest.mark.proof
def test_scores_with_the_scale_of_an_argument_are_no_mistake(tmp_path: Path) -> None:
    code = CODE.replace("num_kv_heads):", "num_kv_heads, attention_multiplier=1.0):")
    code = code.replace("self.size**-0.5", "self.scaling")
    code = code.replace(
        "        self.q_norm,", "        self.scaling = attention_multiplier\n        self.q_norm,"
    )
    with pytest.raises(Unclear):
        adapted(tmp_path, "NormedAttention", code)


@pytest.mark.proof
def test_norms_that_subtract_the_mean_are_a_question(tmp_path: Path) -> None:
    code = CODE.replace(
        "Norm(self.size), Norm(self.size)",
        "nn.LayerNorm(self.size, bias=False), nn.LayerNorm(self.size, bias=False)",
    )
    with pytest.raises(Unclear):
        adapted(tmp_path, "NormedAttention", code)


@pytest.mark.proof
def test_a_norm_of_keys_that_is_not_called_does_not_pass(tmp_path: Path) -> None:
    code = CODE.replace("self.k_norm(self.k_proj(x).view(shape))", "self.k_proj(x).view(shape)")
    try:
        backend = adapted(tmp_path, "NormedAttention", code)
    except Unclear:
        return
    assert broken(backend, *CLAUSES)
