"""RMS norms that compute in float32 are sound; what no rounding makes is not read as such."""

from dataclasses import replace

import pytest
import torch
from proof import share
from torch import Tensor, nn

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest_spec import Backend


class Row(nn.Module):
    """The weight of an RMS norm; subclasses normalise."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.eps = 1e-6
        self.weight = nn.Parameter(torch.ones(dim))


class InSingle(Row):
    """All of it in float32."""

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        rows = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (rows * self.weight.float()).type_as(x)


class FactorInSingle(Row):
    """The mean of squares in float32 alone."""

    def forward(self, x: Tensor) -> Tensor:
        factor = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * x * factor


class OffsetInSingle(Row):
    """The weight lacks 1, which is added in float32."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        nn.init.zeros_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        rows = wide / (wide.square().mean(-1, keepdim=True) + self.eps).sqrt()
        return (rows * (1.0 + self.weight.float())).to(x.dtype)


class BiasInSingle(Row):
    """A bias is added in float32."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        rows = wide * (wide.square().mean(-1, keepdim=True) + self.eps) ** -0.5
        return torch.addcmul(self.bias.float(), rows, self.weight.float()).to(x.dtype)


class LengthInSingle(Row):
    """A row of length 1 in float32, times the root of the width."""

    def forward(self, x: Tensor) -> Tensor:
        rows = nn.functional.normalize(x.float(), dim=-1, eps=1e-12) * x.size(-1) ** 0.5
        return rows.to(x.dtype) * self.weight


class EpsilonAddedToQuotient(Row):
    """The epsilon is added to the quotient, not to what divides."""

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x / x.pow(2).mean(-1, keepdim=True).sqrt() + self.eps


class SmallEpsilonAddedToQuotient(EpsilonAddedToQuotient):
    """An epsilon that is below the roundings of most numbers in float32."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.eps = 1e-8


class EpsilonAddedBeforeWeight(Row):
    """The epsilon is added to the quotient, and the weight multiplies both."""

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x / x.pow(2).mean(-1, keepdim=True).sqrt() + self.eps)


class EpsilonAddedToQuotientInSingle(Row):
    """The epsilon is added to the quotient, in float32."""

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        rows = wide / wide.pow(2).mean(-1, keepdim=True).sqrt() + self.eps
        return self.weight * rows.to(x.dtype)


SOUND = (InSingle, FactorInSingle, OffsetInSingle, BiasInSingle, LengthInSingle)
WRONG = (
    EpsilonAddedToQuotient,
    SmallEpsilonAddedToQuotient,
    EpsilonAddedBeforeWeight,
    EpsilonAddedToQuotientInSingle,
)
SEEDS = (0, *(pytest.param(seed, marks=pytest.mark.proof) for seed in (1, 2)))


def _adapted(norm: type[Row]) -> Backend:
    return attentest.adapted(norm, component="rms_norm")


def _statuses(backend: Backend, seed: int) -> dict[str, Status]:
    bench = Bench.for_status(backend, effort=0.5, seed=seed)
    clauses = ("rms_norm.formula", "rms_norm.arithmetic")
    return {clause: judge(bench, clause).status for clause in clauses}


@share(2)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("norm", SOUND)
def test_norm_in_single_precision_is_measured_and_conforms(norm: type[Row], seed: int) -> None:
    backend = _adapted(norm)
    assert backend.choices["rms_arithmetic"] == "float32"
    assert any("assumed rms_arithmetic=float32" in one for one in backend.understood)
    assert not {Status.VIOLATION, Status.ERROR} & {*_statuses(backend, seed).values()}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("norm", WRONG)
def test_epsilon_added_to_the_quotient_is_no_rounding(norm: type[Row], seed: int) -> None:
    assert _statuses(_adapted(norm), seed)["rms_norm.formula"] is Status.VIOLATION


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("norm", WRONG)
def test_declared_single_precision_does_not_hide_it(norm: type[Row], seed: int) -> None:
    declared = replace(_adapted(norm), choices={"rms_arithmetic": "float32"})
    assert _statuses(declared, seed)["rms_norm.formula"] is Status.VIOLATION
