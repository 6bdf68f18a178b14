"""Norms that hold the sublayer behind them: they are judged without it."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))
        self.beta = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        return centred * (variance + 1e-5).rsqrt() * self.gamma + self.beta


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = LayerNorm(dim)
        self.fn = fn

    def forward(self, x, *args, **kwargs):
        return self.fn(self.norm(x), *args, **kwargs)
"""

CALL = "self.fn(self.norm(x), *args, **kwargs)"
CLAUSES = ("layer_norm.formula", "layer_norm.parameters-trained")


def test_norm_is_judged_without_the_sublayer_behind_it(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "PreNorm", CODE)
    assert any("fn is what follows the norm" in one for one in backend.assumed), backend.assumed
    assert "fn=torch.nn.Identity()" in backend.written()
    assert broken(backend, *CLAUSES) == []


@share(2)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("* (variance + 1e-5).rsqrt()", "* (variance + 1e-5).reciprocal()"),
        ("x.mean(-1, keepdim=True)", "x.mean(-2, keepdim=True)"),
        ("* self.gamma + self.beta", "* self.gamma"),
        (CALL, "self.fn(x, *args, **kwargs)"),
    ],
)
def test_mistake_in_a_norm_before_a_sublayer_does_not_pass(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, "PreNorm", CODE, right, wrong, *CLAUSES)


@pytest.mark.parametrize("other", [f"x + {CALL}", "self.norm(x + self.fn(x))"])
def test_norm_with_a_residual_sum_around_its_sublayer_is_a_question(
    tmp_path: Path, other: str
) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "PreNorm", CODE.replace(CALL, other))
