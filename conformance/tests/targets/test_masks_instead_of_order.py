"""Attention with a switch that hides later positions where it gets no mask, and there alone."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, dim, heads, is_causal=True):
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.query, self.key, self.value, self.out = (
            nn.Linear(dim, dim, bias=False) for _ in range(4)
        )

    def forward(self, x, context, mask=None):
        query, key, value = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.query(x), self.key(context), self.value(context))
        )
        causal = self.is_causal and mask is None
        mixed = functional.scaled_dot_product_attention(query, key, value, mask, is_causal=causal)
        return self.out(mixed.transpose(1, 2).flatten(2))
"""
AT_CALLS = edited(
    CODE,
    (", is_causal=True", ""),
    ("self.heads, self.is_causal = heads, is_causal", "self.heads = heads"),
    ("mask=None)", "mask=None, is_causal=True)"),
    ("self.is_causal and", "is_causal and"),
)
FORMULA, MASKED = "multi_head_attention.formula", "multi_head_attention.mask-effect"


@pytest.mark.parametrize("code", [CODE, AT_CALLS])
def test_attention_is_judged_with_a_mask_in_every_call(tmp_path: Path, code: str) -> None:
    found = adapted(tmp_path, "Attention", code)
    assert not broken(found, FORMULA)
    assert "is_causal=True, its default, hides later positions only where no mask is given" in (
        " ".join(found.assumed)
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("query, key, value, mask,", "query, key, value, None if mask is None else mask.mT,"),
        ("query, key, value, mask,", "query, key, value, None,"),
        ("query, key, value, mask,", "query, value, key, mask,"),
        ("mixed.transpose(1, 2).flatten(2)", "mixed.reshape(*x.shape)"),
    ],
)
def test_mistakes_beside_the_switch_do_not_pass(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "Attention", CODE, right, wrong, FORMULA)


def test_attention_without_a_switch_is_asked_about(tmp_path: Path) -> None:
    plain = edited(
        CODE,
        (", is_causal=True", ""),
        ("self.heads, self.is_causal = heads, is_causal", "self.heads = heads"),
        ("self.is_causal and", "")
    )  # fmt: skip
    with pytest.raises(Unclear, match="hides later positions only where no mask is given"):
        adapted(tmp_path, "Attention", plain)


def test_strict_reading_asks(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="hides later positions only where no mask is given"):
        adapted(tmp_path, "Attention", CODE, strict=True)


def test_switch_that_sees_later_positions_is_asked_about(tmp_path: Path) -> None:
    wrong = edited(CODE, ("is_causal=causal)", "is_causal=False)"))
    with pytest.raises(Unclear, match="sees later positions"):
        adapted(tmp_path, "Attention", wrong)
