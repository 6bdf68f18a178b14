"""The line and the words of norms that divide by something else."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge

NORM = """
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * x
"""

RIGHT = "x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)"


@pytest.mark.parametrize(
    ("wrong", "computed"),
    [
        (
            "x = x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + self.eps)",
            "sum of x^2 + epsilon, without a division by d",
        ),
        (
            "x = x / (x.norm(dim=-1, keepdim=True) + self.eps)",
            "the length + epsilon, without a division by sqrt(d)",
        ),
    ],
)
def test_length_in_the_place_of_the_root_of_the_mean(
    tmp_path: Path, wrong: str, computed: str
) -> None:
    backend = adapted(tmp_path, "RMSNorm", edited(NORM, (RIGHT, wrong)))
    location = judge(Bench(backend, shrink=False), "rms_norm.formula").location
    assert location is not None
    assert (location.code, location.computed, location.confirmed) == (wrong, computed, True)


LAYER_NORMS = (SUPPORT / "lines" / "layer_norms.py").read_text(encoding="utf-8")
VARIANCE = "var = wide.var(-1, keepdim=True, unbiased=False)"


def test_mean_of_squares_in_the_place_of_the_variance_is_the_line_that_computes_it(
    tmp_path: Path,
) -> None:
    """The formula has such a mean on no way to the divisor, and the line after it is right."""
    wrong = "var = wide.pow(2).mean(-1, keepdim=True)"
    code = edited(LAYER_NORMS, (VARIANCE, wrong))
    backend = adapted(tmp_path, "LayerNorm", code, anyway=True)
    location = judge(Bench(backend, shrink=False), "layer_norm.formula").location
    assert location is not None
    assert location.code == wrong
    assert "made from the mean of squares" in location.computed
