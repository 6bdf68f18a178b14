"""Masks that causal attention reads only where a switch of its constructor is on."""

import ast
from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.advice.own_order import switch_of

CODE = """
import torch
from torch import nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    def __init__(self, dim, heads, stepwise=False):
        super().__init__()
        self.heads, self.stepwise = heads, stepwise
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, mask=None):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.to_qkv(x).chunk(3, -1)
        )
        if self.stepwise:
            scores = q @ k.mT * q.shape[-1] ** -0.5
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            mixed = scores.softmax(-1) @ v
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.to_out(mixed.transpose(1, 2).flatten(2))
"""
FORMULA = "multi_head_attention.formula"


@pytest.mark.proof
def test_mask_behind_a_switch_that_is_off_is_left_out(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "SelfAttention", CODE)
    assert any("mask is read only where self.stepwise says so" in one for one in backend.assumed)
    assert broken(backend, FORMULA) == []


def test_switch_is_the_attribute_that_all_readings_are_behind() -> None:
    source = CODE.partition("\n    def forward")[2]
    assert switch_of(ast.parse(f"def forward{source}"), "mask") == "self.stepwise"
    assert switch_of(ast.parse(f"def forward{source}"), "x") == ""
    off = source.replace("if self.stepwise", "if not self.stepwise")
    assert switch_of(ast.parse(f"def forward{off}"), "mask") == ""
    never = "def forward(self, x, mask=None):\n    return x"
    assert switch_of(ast.parse(never), "mask") == ""


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("is_causal=True", "is_causal=True, scale=1.0"),
        ("        if self.stepwise:", "        if False:"),  # the mask is forgotten
    ],
)
def test_mistake_next_to_a_mask_behind_a_switch_is_found(
    right: str, wrong: str, tmp_path: Path
) -> None:
    code = CODE.replace(right, wrong)
    assert code != CODE
    try:
        backend = adapted(tmp_path, "SelfAttention", code)
    except Unclear:
        return
    assert broken(backend, FORMULA)
