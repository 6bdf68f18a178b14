"""Attention that rounds the width of its heads down, and attention that loses columns by it."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken
from proof import item

import attentest
from attentest_spec import Backend

FORMULA = "multi_head_attention.formula"
CLAUSE = "multi_head_attention.indivisible-width-refused"
CODE = """
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        inner = n_heads * self.d_head
        self.query = nn.Linear(d_model, inner)
        self.key = nn.Linear(d_model, inner)
        self.value = nn.Linear(d_model, inner)
        self.out = nn.Linear(inner, d_model)

    def heads(self, x):
        return x.unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = map(self.heads, (self.query(query), self.key(key), self.value(value)))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


@pytest.mark.parametrize(
    ("right", "other"),
    [
        ("n_heads", "n_heads"),
        ("inner)\n", "inner, bias=False)\n"),
    ],
)
def test_heads_of_a_rounded_width_are_not_judged(tmp_path: Path, right: str, other: str) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", CODE.replace(right, other))
    assert backend.limits.rounded_heads
    assert broken(backend, FORMULA, CLAUSE) == []
    assert any("rounded down" in sentence for sentence in backend.understood)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("inner = n_heads * self.d_head", "inner = d_model"),
        ("math.sqrt(self.d_head)", "math.sqrt(query.size(-1) / self.n_heads)"),
        ("self.query(query)", "self.query(query.narrow(-1, 0, self.d_head * self.n_heads))"),
    ],
    ids=["unused rows", "another scale", "unused columns"],
)
def test_columns_or_scales_that_rounding_breaks_are_a_violation(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert right in CODE
    code = CODE.replace(right, wrong)
    code = code.replace("x.unflatten", "x[..., : self.n_heads * self.d_head].unflatten")
    if "inner = d_model" in wrong:
        code = code.replace("self.out(", "self.out(self.filled(").replace(
            "flatten(2))", "flatten(2)))"
        )
        code += """
    def filled(self, x):
        return nn.functional.pad(x, (0, self.out.in_features - x.size(-1)))
"""
    if "narrow" in wrong:
        code = code.replace("self.query = nn.Linear(d_model", "self.query = nn.Linear(inner")
    backend = adapted(tmp_path, "MultiHeadAttention", code)
    assert not backend.limits.rounded_heads
    assert broken(backend, FORMULA, CLAUSE)


@pytest.mark.proof
def test_rounded_heads_are_the_only_thing_that_is_not_judged(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(CODE.replace("math.sqrt(self.d_head)", "math.sqrt(query.size(-1))"))
    report = attentest.check(f"{file}:MultiHeadAttention", clauses=[FORMULA])
    assert report[FORMULA].status == "violation"


def test_heads_of_a_rounded_width_are_a_violation_where_the_reading_is_strict(
    tmp_path: Path,
) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", CODE, strict=True)
    assert not backend.limits.rounded_heads
    assert broken(backend, CLAUSE)


OF_MODEL = "model.indivisible-width-refused"


def whole_model(folder: Path, *edit: str) -> Backend:
    """Return the model of support, whose heads get a rounded width, with an `edit` of its code."""
    code = (SUPPORT / "wild_models" / "einsum.py").read_text()
    assert not edit or edit[0] in code
    return adapted(folder, "Seq2Seq", code.replace(*edit) if edit else code)


@pytest.mark.proof
def test_a_whole_model_whose_heads_have_a_rounded_width_is_not_judged_by_it(tmp_path: Path) -> None:
    backend = whole_model(tmp_path)
    assert backend.limits.rounded_heads
    assert broken(backend, "model.formula", OF_MODEL) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong", "is_rounded"),
    [
        item(
            "self.scale = width**-0.5",
            "self.scale = (d_model / n_head) ** -0.5",
            False,
            name="another scale where it is rounded",
            unit=True,
        ),
        item("self.ln_trg(y)", "y", True, name="another mistake", unit=False),
    ],
)
def test_a_mistake_elsewhere_in_a_whole_model_leaves_rounded_heads_as_they_are(
    tmp_path: Path, right: str, wrong: str, is_rounded: bool
) -> None:
    assert whole_model(tmp_path, right, wrong).limits.rounded_heads is is_rounded
