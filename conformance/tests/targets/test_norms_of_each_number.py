"""Code that is called a norm and works on each number by itself: it is asked about."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.alpha, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        normed = centred / (centred.square().mean(-1, keepdim=True) + self.eps).sqrt()
        return self.alpha * normed + self.bias
"""


@pytest.mark.parametrize("wrong", ["torch.tanh(x)", "x", "x / (1 + x.abs())"])
def test_numbers_that_are_changed_one_by_one_are_asked_about(tmp_path: Path, wrong: str) -> None:
    code = edited(CODE, ("self.alpha * normed", f"self.alpha * {wrong}"))
    with pytest.raises(Unclear, match="each number by itself"):
        adapted(tmp_path, "Norm", code)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("x.mean(-1", "x.mean(1"),
        ("centred.square().mean(-1", "centred.square().mean(1"),
        ("centred /", "x /"),
        ("-1, keepdim", "1, keepdim"),
        ("-1, keepdim", "0, keepdim"),
    ],
)
def test_wrong_norms_are_judged_or_asked_about_otherwise(
    tmp_path: Path, right: str, wrong: str
) -> None:
    found, asked = None, ""
    try:
        found = adapted(tmp_path, "Norm", edited(CODE, (right, wrong)))
    except Unclear as question:
        asked = str(question)
    assert "each number by itself" not in asked
    assert found is None or broken(found, "layer_norm.formula")


def test_norm_of_rows_conforms(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "Norm", CODE), "layer_norm.formula")
