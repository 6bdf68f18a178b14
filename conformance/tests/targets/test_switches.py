"""Switches of constructors that are off by default: what they switch on is not judged."""

from pathlib import Path

import pytest

import attentest
from attentest.targets.adapt import Unclear

CODE = """
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, qk_norm=False, bias=True, gated=False):
        super().__init__()
        self.h, self.d, self.qk_norm, self.gated = n_heads, d_model // n_heads, qk_norm, gated
        self.q, self.k, self.v, self.o = (
            nn.Linear(d_model, d_model, bias=bias) for _ in range(4)
        )
        if qk_norm:
            self.qn, self.kn = nn.LayerNorm(self.d), nn.LayerNorm(self.d)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            f(x).unflatten(-1, (self.h, self.d)).transpose(1, 2)
            for f, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        if self.qk_norm:
            q, k = self.qn(q), self.qn(k)
        s = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        y = self.o((s.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return y * query.sigmoid() if self.gated else y
"""


def test_switches_that_are_off_are_named(tmp_path: Path) -> None:
    file = tmp_path / "switches.py"
    file.write_text(CODE)
    read = attentest.adapted(f"{file}:MultiHeadAttention")
    assert read.summary.endswith("; off by default: qk_norm, gated")
    given = attentest.adapted(f"{file}:MultiHeadAttention", given={"gated": False})
    assert given.summary.endswith("; off by default: qk_norm")


def test_no_switch_is_named_where_there_is_none(tmp_path: Path) -> None:
    file = tmp_path / "switches.py"
    file.write_text(
        CODE.replace("qk_norm=False, bias=True, gated=False", "bias=True")
        .replace("qk_norm, gated\n", "False, False\n")
        .replace("if qk_norm:", "if False:")
    )
    assert "off by default" not in attentest.adapted(f"{file}:MultiHeadAttention").summary


@pytest.mark.parametrize(
    ("own", "old", "new", "is_right"),
    [
        ("norm=None", "qk_norm=False", "norm=nn.LayerNorm", True),
        pytest.param(
            *("norm=None", "qk_norm=False", "norm=nn.LayerNorm", False), marks=pytest.mark.proof
        ),
        pytest.param(
            *("qk_norm=False", "qk_norm=False", "qk_norm=True", True), marks=pytest.mark.proof
        ),
    ],
)
def test_switch_that_adds_norms_of_queries_and_keys_is_advised(
    tmp_path: Path, own: str, old: str, new: str, is_right: bool
) -> None:
    code = CODE.replace(old, new)
    if own == "norm=None":
        code = code.replace(", qk_norm, gated", ", norm is not None, gated")
        code = code.replace("if qk_norm:", "if norm is not None:")
        code = code.replace("nn.LayerNorm(self.d)", "norm(self.d)")
    file = tmp_path / "switches.py"
    file.write_text(code if is_right else code.replace("math.sqrt(self.d)", "self.d"))
    with pytest.raises(Unclear) as question:
        attentest.adapted(f"{file}:MultiHeadAttention")
    assert (f"--give {own} (in Python" in question.value.text) == is_right
