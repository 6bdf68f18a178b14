"""Attention with rotary positions whose heads have a rounded width, and that uses every column."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

CLAUSE = "multi_head_attention.indivisible-width-refused"
FORMULA = "multi_head_attention.formula"

CODE = """
import torch
from torch import nn


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class LateAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, num_kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = num_heads, num_kv_heads, hidden_size // num_heads
        self.q_proj = nn.Linear(hidden_size, num_heads * self.size, bias=True)
        self.k_proj = nn.Linear(hidden_size, num_kv_heads * self.size, bias=True)
        self.v_proj = nn.Linear(hidden_size, num_kv_heads * self.size, bias=True)
        self.o_proj = nn.Linear(num_heads * self.size, hidden_size, bias=False)

    def forward(self, x, position_embeddings, mask=None):
        cos, sin = (one.unsqueeze(1) for one in position_embeddings)
        shape = (*x.shape[:-1], -1, self.size)
        projections = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (one(x).view(shape).transpose(1, 2) for one in projections)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k = k.repeat_interleave(self.heads // self.kv_heads, dim=1)
        v = v.repeat_interleave(self.heads // self.kv_heads, dim=1)
        scores = q @ k.transpose(-1, -2) * self.size**-0.5
        if mask is not None:
            scores = scores + mask
        out = scores.softmax(dim=-1) @ v
        return self.o_proj(out.transpose(1, 2).flatten(2))
"""

ALIBI = """
import torch
from torch import nn


class BiasedAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.size = heads, dim // heads
        self.wq = nn.Linear(dim, heads * self.size, bias=False)
        self.wk = nn.Linear(dim, heads * self.size, bias=False)
        self.wv = nn.Linear(dim, heads * self.size, bias=False)
        self.wo = nn.Linear(heads * self.size, dim, bias=False)

    def forward(self, x):
        shape = (self.heads, self.size)
        projected = (one(x).unflatten(-1, shape) for one in (self.wq, self.wk, self.wv))
        q, k, v = (one.transpose(1, 2) for one in projected)
        places = torch.arange(x.size(1))
        slopes = 2.0 ** (-8.0 * torch.arange(1, self.heads + 1) / self.heads)
        behind = (places[None, :] - places[:, None]).clamp(max=0)
        scores = q @ k.mT * self.size**-0.5 + slopes[:, None, None] * behind
        scores = scores.masked_fill(places[None, :] > places[:, None], -torch.inf)
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


@pytest.mark.parametrize(("name", "code"), [("LateAttention", CODE), ("BiasedAttention", ALIBI)])
def test_heads_with_positions_and_a_rounded_width_are_not_judged(
    tmp_path: Path, name: str, code: str
) -> None:
    backend = adapted(tmp_path, name, code)
    assert backend.limits.rounded_heads
    assert any("rounded down" in sentence for sentence in backend.understood)
    assert broken(backend, FORMULA, CLAUSE) == []


def test_a_scale_that_rounding_breaks_is_a_violation(tmp_path: Path) -> None:
    code = CODE.replace("self.size**-0.5", "(x.size(-1) / self.heads) ** -0.5")
    backend = adapted(tmp_path, "LateAttention", code)
    assert not backend.limits.rounded_heads


def test_rounded_heads_are_no_second_violation_of_attention_with_another_mistake(tmp_path):
    code = CODE.replace("scores.softmax(dim=-1)", "scores.softmax(dim=-2)")
    assert len(broken(adapted(tmp_path, "LateAttention", code), FORMULA, CLAUSE)) == 1


def test_columns_that_rounding_leaves_out_are_a_violation(tmp_path: Path) -> None:
    used = "x * (torch.arange(x.size(-1)) < self.heads * self.size)"
    code = CODE.replace(
        "q = q * cos", f"q = self.q_proj({used}).view(shape).transpose(1, 2)\n        q = q * cos"
    )
    backend = adapted(tmp_path, "LateAttention", code)
    assert not backend.limits.rounded_heads


def test_rounded_heads_with_positions_are_judged_where_the_reading_is_strict(
    tmp_path: Path,
) -> None:
    declared = {
        "attention_rotary": "query-and-key",
        "rotary_pairs": "halves",
        "projection_bias": "all-but-output",
        "key_heads": "fewer",
    }
    backend = adapted(tmp_path, "LateAttention", CODE, strict=True, choices=declared)
    assert not backend.limits.rounded_heads
