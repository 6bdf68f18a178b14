"""Norms of queries and keys: their epsilon, without weights, and norms of another kind."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn
from torch.nn import functional as F


class Single(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return y.type_as(x) * self.weight


class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads, self.size = num_heads, dim // num_heads
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.q_norm, self.k_norm = nn.RMSNorm(self.size), nn.RMSNorm(self.size)

    def heads(self, x):
        return x.unflatten(-1, (self.num_heads, self.size)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k = self.heads(self.q_proj(query)), self.heads(self.k_proj(key))
        q, k = self.q_norm(q), self.k_norm(k)
        out = F.scaled_dot_product_attention(q, k, self.heads(self.v_proj(value)), attn_mask=mask)
        return self.out_proj(out.transpose(1, 2).flatten(2))
"""
NORMS = "self.q_norm, self.k_norm = nn.RMSNorm(self.size), nn.RMSNorm(self.size)"
CLAUSES = [f"multi_head_attention.{one}" for one in ("formula", "query-key-norm", "head-width")]


def with_norms(made: str) -> str:
    """Return CODE with other norms, each made by the expression `made`."""
    return CODE.replace(NORMS, f"self.q_norm, self.k_norm = ({made} for _ in range(2))")


@share(3, rest=1)
@pytest.mark.parametrize(
    ("made", "epsilon"),
    [
        ("nn.RMSNorm(self.size)", 2.220446049250313e-16),
        ("nn.RMSNorm(self.size, eps=3e-5)", 3e-5),
        ("Single(self.size, 2e-6)", 2e-6),
        pytest.param("Single(self.size, 1e-12)", 1e-12, marks=pytest.mark.proof),
        pytest.param("Single(self.size, 1e-5)", 1e-5, marks=pytest.mark.proof),
    ],
)
def test_epsilons_of_heads_are_measured(tmp_path: Path, made: str, epsilon: float) -> None:
    backend = adapted(tmp_path, "Attention", with_norms(made))
    assert backend.choices["rms_epsilon"] == pytest.approx(epsilon, rel=1e-4)
    assert broken(backend, *CLAUSES) == []


def test_norms_without_weights_are_measured(tmp_path: Path) -> None:
    backend = adapted(
        tmp_path, "Attention", with_norms("nn.RMSNorm(self.size, elementwise_affine=False)")
    )
    assert backend.choices["query_key_norm"] == "per-head"
    assert broken(backend, *CLAUSES) == []


@pytest.mark.parametrize(
    "made",
    [
        "nn.LayerNorm(self.size)",
        pytest.param("nn.LayerNorm(self.size, bias=False)", marks=pytest.mark.proof),
    ],
)
def test_layer_norms_of_heads_are_a_question(tmp_path: Path, made: str) -> None:
    with pytest.raises(Unclear, match="q_norm subtracts the mean: it is a layer norm"):
        adapted(tmp_path, "Attention", with_norms(made))


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("y.pow(2).mean(-1, keepdim=True)", "y.pow(2).sum(-1, keepdim=True)"),
        pytest.param(
            "y.type_as(x) * self.weight", "y.type_as(x) + self.weight", marks=pytest.mark.proof
        ),
        ("attn_mask=mask)", "attn_mask=mask, scale=1.0)"),
    ],
)
def test_mistakes_are_not_excused(tmp_path: Path, right: str, wrong: str) -> None:
    code = with_norms("Single(self.size, 1e-6)")
    assert asked_or_broken(tmp_path, "Attention", code, right, wrong, CLAUSES[0])


@pytest.mark.proof
def test_epsilon_is_read_of_the_norm_itself_where_the_numbers_do_not_fit(tmp_path: Path) -> None:
    """The example differs by the mistake, and not by an epsilon that nothing measured."""
    code = with_norms("nn.RMSNorm(self.size, eps=1e-3)")
    wrong = code.replace("out.transpose(1, 2).flatten(2)", "out.reshape(query.shape)")
    backend = adapted(tmp_path, "Attention", wrong)
    assert backend.choices["rms_epsilon"] == 1e-3
    assert broken(backend, CLAUSES[0])


OF_EACH_HEAD = """
import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, heads, dim):
        super().__init__()
        self.scale = dim**0.5
        self.gamma = nn.Parameter(torch.ones(heads, 1, dim))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * self.gamma
"""


@pytest.mark.parametrize("wrong", ["", "F.normalize(x, dim=-2)", "F.normalize(x, p=1, dim=-1)"])
def test_norm_with_weights_of_each_head_is_judged_with_one(tmp_path: Path, wrong: str) -> None:
    right = "F.normalize(x, dim=-1)"
    if wrong:
        clause = "rms_norm.formula"
        assert asked_or_broken(tmp_path, "RMSNorm", OF_EACH_HEAD, right, wrong, clause)
        return
    backend = adapted(tmp_path, "RMSNorm", OF_EACH_HEAD)
    assert "heads is a number of heads with weights of their own" in "".join(backend.assumed)
    assert not broken(backend, "rms_norm.formula", "rms_norm.initial-weight")
