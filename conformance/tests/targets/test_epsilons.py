"""Norms with an epsilon in another place or of another size, and wrong twins of them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt.reading import Unclear


class Scaled(nn.Module):
    """A norm of rows that divides by what a subclass computes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def size(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return x / self.size(x) * self.gain


class LeastRoot(Scaled):
    def size(self, x: Tensor) -> Tensor:
        return (x.norm(dim=-1, keepdim=True) * x.shape[-1] ** -0.5).clamp(min=1e-8)


class LeastSquare(Scaled):
    def size(self, x: Tensor) -> Tensor:
        return x.square().mean(-1, keepdim=True).clamp(min=1e-8).sqrt()


class OwnEpsilon(Scaled):
    def size(self, x: Tensor) -> Tensor:
        return torch.sqrt(x.square().mean(-1, keepdim=True) + 3e-7)


class AddedToLength(Scaled):
    """The epsilon that is added to the root depends on the width."""

    def size(self, x: Tensor) -> Tensor:
        return (x.norm(dim=-1, keepdim=True) + 1e-8) * x.shape[-1] ** -0.5


class OneColumnLess(Scaled):
    def size(self, x: Tensor) -> Tensor:
        return (x.square().sum(-1, keepdim=True) / (x.shape[-1] - 1)).clamp(min=1e-8).sqrt()


class IdleWeight(AddedToLength):
    def forward(self, x: Tensor) -> Tensor:
        return x / self.size(x)


class LeastDeviation(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        x = x - x.mean(-1, keepdim=True)
        size = x.square().mean(-1, keepdim=True).sqrt().clamp(min=1e-6)
        return x / size * self.gain + self.bias


class MeanKept(LeastDeviation):
    def forward(self, x: Tensor) -> Tensor:
        size = x.std(-1, keepdim=True, unbiased=False).clamp(min=1e-6)
        return x / size * self.gain + self.bias


def shown(thing: Callable[..., nn.Module], component: str, **declared: object) -> str:
    """Return the status of the clause `formula` of `thing`, "question" where it is asked about."""
    try:
        backend = attentest.adapted(thing, component=component, choices=declared)
    except Unclear as asked:
        return "question" if "large rows follow the formula" in str(asked) else str(asked)
    bench = Bench.for_status(backend, effort=0.1)
    return judge(bench, f"{component}.formula").status.value


@pytest.mark.parametrize(
    ("thing", "status"),
    [
        (LeastRoot, "pass"),
        (LeastSquare, "pass"),
        (OwnEpsilon, "pass"),
        (AddedToLength, "question"),
        (OneColumnLess, "violation"),
        (IdleWeight, "violation"),
    ],
)
def test_an_rms_norm_is_judged_by_its_own_epsilon(thing: type, status: str) -> None:
    assert shown(thing, "rms_norm") == status


def test_a_declared_epsilon_is_judged() -> None:
    assert shown(OwnEpsilon, "rms_norm", rms_epsilon=1e-5) == "violation"
    assert shown(AddedToLength, "rms_norm", rms_epsilon=1e-8) == "violation"


@pytest.mark.parametrize(
    ("thing", "status"), [(LeastDeviation, "question"), (MeanKept, "violation")]
)
def test_a_layer_norm_with_another_epsilon_is_asked_about(thing: type, status: str) -> None:
    assert shown(thing, "layer_norm") == status


class ByPrecision(LeastDeviation):
    """A layer norm with 1e-5 in float32 and 1e-3 in every other precision."""

    @staticmethod
    def epsilon(x: Tensor) -> float:
        return 1e-5 if x.dtype == torch.float32 else 1e-3

    def forward(self, x: Tensor) -> Tensor:
        rows = x - x.mean(-1, keepdim=True)
        inverse = (rows.square().mean(-1, keepdim=True) + self.epsilon(x)).rsqrt()
        return rows * inverse * self.gain + self.bias


class NoneInSingle(ByPrecision):
    """The same, and no epsilon at all in float32: a mistake."""

    @staticmethod
    def epsilon(x: Tensor) -> float:
        return 0.0 if x.dtype == torch.float32 else 1e-3


class WrongInSingle(ByPrecision):
    """The same with a gain that is squared in float32."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (self.gain if x.dtype == torch.float32 else 1.0)


def test_a_norm_with_an_epsilon_of_each_precision_is_judged_in_single_precision() -> None:
    backend = attentest.adapted(ByPrecision, component="layer_norm")
    assert "its epsilon in float32, 1e-05, is the one that is meant" in " ".join(backend.assumed)
    bench = Bench.for_status(backend, effort=1.0)
    assert judge(bench, "layer_norm.float32").status == "pass"
    with pytest.raises(Unclear, match=r"its epsilon is 1e-05 in float32 and 0\.001 in float64"):
        attentest.adapted(ByPrecision, component="layer_norm", strict=True)


@pytest.mark.parametrize("thing", [NoneInSingle, WrongInSingle])
def test_mistakes_in_single_precision_are_violations(thing: type) -> None:
    backend = attentest.adapted(thing, component="layer_norm")
    found = judge(Bench.for_status(backend, effort=1.0), "layer_norm.float32")
    assert found.status == "violation"


class Block(nn.Module):
    """A layer with norms of its own, each after its residual sum."""

    def __init__(self, d_model: int, heads: int, d_ff: int, norm: type = LeastDeviation) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, heads, bias=False, batch_first=True)
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = norm(d_model), norm(d_model)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
        return self.norm2(x + self.outer(self.inner(x).relu()))


class KeptMeans(Block):
    def __init__(self, d_model: int, heads: int, d_ff: int) -> None:
        super().__init__(d_model, heads, d_ff, MeanKept)


@pytest.mark.proof
def test_a_layer_asks_about_the_epsilon_of_its_norms():
    with pytest.raises(Unclear, match="norm1 is a layer norm whose large rows follow the formula"):
        attentest.adapted(Block, component="encoder_layer")
    backend = attentest.adapted(KeptMeans, component="encoder_layer", anyway=True)
    found = judge(Bench.for_status(backend, effort=0.1), "encoder.norm-placement")
    assert found.status == "violation"


OF_ONE_NUMBER = """
import torch
from torch import nn


class ScaleNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.g = nn.Parameter(torch.ones(1) * dim**0.5)

    def forward(self, x):
        return self.g * x / x.norm(dim=-1, keepdim=True).clamp(min=1e-5)
"""


@pytest.mark.parametrize("component", ["", "layer_norm", "rms_norm"])
def test_a_norm_with_one_number_for_all_columns_is_a_question(
    tmp_path: Path, component: str
) -> None:
    file = tmp_path / "own.py"
    file.write_text(OF_ONE_NUMBER)
    with pytest.raises(Unclear, match="one number for all columns"):
        attentest.adapted(f"{file}:ScaleNorm", component=component)
