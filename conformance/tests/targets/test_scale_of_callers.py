"""Functions of attention whose caller scales the queries are asked about, and others judged."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


def attention(q, k, v, mask=None):
    scores = q @ k.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(-1) @ v


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask=None):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        return self.o(attention(q * self.scale, k, v, mask).transpose(1, 2).flatten(2))
"""
FORMULA = "attention.formula"


def test_caller_that_scales_is_named_in_the_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"line 24, `q \* self.scale`.*--choice score_scale=1.0"):
        adapted(tmp_path, "attention", CODE)
    assert broken(adapted(tmp_path, "attention", CODE, choices={"score_scale": 1.0}), FORMULA) == []
    backend = adapted(tmp_path, "SelfAttention", CODE)
    assert broken(backend, "multi_head_attention.formula") == []


@pytest.mark.parametrize(
    ("right", "wrong"), [("q * self.scale", "q"), ("attention(q *", "other(q *")]
)
def test_function_whose_scale_is_forgotten_is_a_violation(
    tmp_path: Path, right: str, wrong: str
) -> None:
    code = CODE.replace(right, wrong)
    assert code != CODE
    assert broken(adapted(tmp_path, "attention", code), FORMULA)


SCALED = """
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, scale=8):
        super().__init__()
        self.scale = scale

    def forward(self, q, k, v, mask=None):
        scores = torch.einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.finfo(scores.dtype).max)
        return torch.einsum("b h i j, b h j d -> b h i d", scores.softmax(-1), v)
"""


def test_scale_that_is_a_number_by_default_is_one_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"as scale is 8 by default.*--choice score_scale=8.0"):
        adapted(tmp_path, "Attend", SCALED)
    assert broken(adapted(tmp_path, "Attend", SCALED, choices={"score_scale": 8.0}), FORMULA) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("* self.scale", "* self.scale * 0.5"), ("softmax(-1)", "softmax(-2)")],
)
def test_mistake_beside_a_scale_of_the_constructor_is_a_violation(
    tmp_path: Path, right: str, wrong: str
) -> None:
    code = SCALED.replace(right, wrong)
    assert code != SCALED
    assert broken(adapted(tmp_path, "Attend", code, choices={"score_scale": 8.0}), FORMULA)
