"""Attention that divides its scores by a width which is given, and has a default for one design."""

import pytest
import torch
from torch import nn

import attentest

CLAUSES = ["attention.formula", "attention.score-scale"]


class Attention(nn.Module):
    """Attention whose callers give the width of their heads."""

    def forward(self, query, key, value, mask=None, dk=64):
        scores = query @ key.transpose(-1, -2)
        if mask is not None:
            scores = scores.masked_fill(mask, -float("inf"))
        return torch.softmax(scores / self.root(dk), dim=-1) @ value

    def root(self, dk):
        return dk**0.5


class WithoutRoot(Attention):
    def root(self, dk):
        return dk


class OfAnotherWidth(Attention):
    def root(self, dk):
        return (dk + 1) ** 0.5


def test_width_of_keys_with_a_default_is_that_of_the_keys():
    assert attentest.check(Attention, "attention", clauses=CLAUSES).conforms
    assert "dk given as the width of a key" in " ".join(attentest.adapted(Attention).understood)


@pytest.mark.parametrize("twin", [WithoutRoot, OfAnotherWidth])
def test_wrong_use_of_a_width_that_is_given_is_detected(twin):
    assert not attentest.check(twin, "attention", clauses=CLAUSES).conforms
