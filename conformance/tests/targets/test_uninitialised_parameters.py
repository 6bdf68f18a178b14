"""Norms whose weight is uninitialised memory, which the model around them fills."""

import pytest
import torch
from torch import nn

import attentest


class RMSNorm(nn.Module):
    """An RMS norm whose weight is one."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(self.first(d_model))

    def first(self, width):
        """Return the first weight."""
        return torch.ones(width)

    def forward(self, x):
        """Divide x by its root mean square."""
        return x * (x.pow(2).mean(-1, keepdim=True) + self.eps).rsqrt() * self.weight


class EmptyRMSNorm(RMSNorm):
    """One that leaves its weight to others."""

    def first(self, width):
        """Return memory."""
        return torch.empty(width)


class FilledRMSNorm(RMSNorm):
    """One that fills the memory."""

    def first(self, width):
        """Return ones in what was memory."""
        return torch.empty(width).fill_(1.0)


class RandomRMSNorm(RMSNorm):
    """One whose first weight is random."""

    def first(self, width):
        """Return random numbers."""
        return nn.init.trunc_normal_(torch.empty(width))


SLUGS = ["rms_norm.initial-weight", "rms_norm.formula"]


def test_a_weight_of_memory_is_initialised_by_others() -> None:
    backend = attentest.adapted(EmptyRMSNorm)
    assert any("another initialises weight" in one for one in backend.assumed)
    assert not backend.limits.initial_values
    assert attentest.check(EmptyRMSNorm, clauses=SLUGS).conforms


def test_a_strict_reading_assumes_no_others() -> None:
    assert attentest.adapted(EmptyRMSNorm, strict=True).limits.initial_values


@pytest.mark.parametrize("norm", [RMSNorm, FilledRMSNorm])
def test_a_weight_of_ones_is_judged(norm: type) -> None:
    assert attentest.adapted(norm).limits.initial_values
    assert attentest.check(norm, clauses=SLUGS).conforms


def test_a_random_weight_is_a_violation() -> None:
    assert not attentest.check(RandomRMSNorm, "rms_norm", clauses=SLUGS[:1]).conforms
