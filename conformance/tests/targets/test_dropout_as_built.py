"""Dropout and biases that code builds in ways of its own: inferred, said and honoured."""

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken

import attentest

FILE = SUPPORT / "wild" / "dropping.py"
CLAUSES = ["feed_forward.formula", "feed_forward.gradient", "feed_forward.dropout-only-in-training"]


@pytest.mark.parametrize(
    ("name", "fixed", "said"),
    [
        ("FixedRate", True, "the rate of some dropout is fixed"),
        ("LeftOut", False, "it is judged without dropout"),
    ],
)
def test_dropout_that_cannot_be_set_is_no_violation(name, fixed, said):
    report = attentest.check(f"{FILE}:{name}", "feed_forward", clauses=CLAUSES)
    assert said in "\n".join(report.inferred)
    limits = attentest.adapted(f"{FILE}:{name}", "feed_forward").limits
    assert (limits.dropout, limits.fixed_dropout) == (False, fixed)
    assert report.conforms, str(report)
    assert [one.status for one in report] == ["pass"] * len(CLAUSES)


def test_another_function_in_training_is_still_a_violation():
    report = attentest.check(f"{FILE}:ScaledInTraining", "feed_forward", clauses=CLAUSES[1:2])
    assert report[CLAUSES[1]].status == "violation"


def test_attention_without_a_bias_of_the_keys_is_judged():
    slugs = ["multi_head_attention.formula", "multi_head_attention.projection-bias"]
    report = attentest.check(f"{FILE}:KeyWithoutBias", "multi_head_attention", clauses=slugs)
    assert "all-but-key" in "\n".join(report.inferred)
    assert report[slugs[0]].status == "pass", str(report)
    assert report.conforms, str(report)


PATHS_DROPPED = """
import torch
from torch import nn


class DropPath(nn.Module):
    def __init__(self, share):
        super().__init__()
        self.share = share

    def forward(self, x):
        if not self.training:
            return x
        kept = torch.rand(len(x), *[1] * (x.dim() - 1)) > self.share
        return x * kept / (1 - self.share)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.drop_path = DropPath(0.05)

    def forward(self, x):
        return self.drop_path(self.down(self.up(x).relu()))
"""


def test_paths_that_are_rarely_dropped_are_seen_as_random(tmp_path):
    backend = adapted(tmp_path, "FeedForward", PATHS_DROPPED)
    assert backend.limits.fixed_dropout
    assert broken(backend, *CLAUSES) == []
