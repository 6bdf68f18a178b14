"""Norms that hold a number as a parameter beside their vectors."""

import pytest
import torch
from torch import Tensor, nn

import attentest
from attentest.targets.adapt import Unclear

FORMULA = "rms_norm.formula"


class RMSNorm(nn.Module):
    """Holds its epsilon as a parameter that is not trained."""

    trained = False

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.eps = nn.Parameter(torch.tensor(1e-6), requires_grad=self.trained)

    def size(self, x: Tensor) -> Tensor:
        return x.square().mean(-1, keepdim=True)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(self.size(x) + self.eps) * self.gain


class TrainedEpsilon(RMSNorm):
    trained = True


class OfTheSum(RMSNorm):
    """Wrong: divides by the root of the sum of squares."""

    def size(self, x: Tensor) -> Tensor:
        return x.square().sum(-1, keepdim=True)


def test_a_fixed_number_is_no_vector_of_the_norm() -> None:
    report = attentest.check(RMSNorm, "rms_norm", clauses=[FORMULA])
    assert report[FORMULA].status == "pass", str(report)


def test_a_trained_number_is_asked_about() -> None:
    with pytest.raises(Unclear, match="TrainedEpsilon is not judged as rms_norm"):
        attentest.adapted(TrainedEpsilon, "rms_norm")


def test_another_formula_is_a_violation() -> None:
    report = attentest.check(OfTheSum, "rms_norm", clauses=[FORMULA])
    assert report[FORMULA].status == "violation", str(report)
