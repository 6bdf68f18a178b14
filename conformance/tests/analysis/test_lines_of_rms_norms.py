"""The line and the words of an RMS norm that divides by something else."""

from pathlib import Path

import pytest
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
