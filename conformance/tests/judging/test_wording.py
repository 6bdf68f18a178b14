"""The wording of a refusal is a clause of its own, with SHOULD: a warning."""

import math

import pytest
import torch
from torch import Tensor, nn

import attentest

torch.set_num_threads(1)

REFUSED = "multi_head_attention.indivisible-width-refused"
NAMED = "multi_head_attention.indivisible-width-named"


class MultiHeadAttention(nn.Module):
    """Correct multi-head attention, whose constructor asserts."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        if d_model % num_heads:  # as `assert` does where pytest does not rewrite it
            raise AssertionError("d_model must be divisible by num_heads")
        self.heads, self.width = num_heads, d_model // num_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def split(self, x: Tensor) -> Tensor:
        return x.view(len(x), -1, self.heads, self.width).transpose(1, 2)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
        q, k, v = self.split(self.q(query)), self.split(self.k(key)), self.split(self.v(value))
        scores = q @ k.mT / math.sqrt(self.width)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Rounding(MultiHeadAttention):
    """Rounds a width that the heads do not divide, and lets the other columns through."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__(d_model - d_model % num_heads, num_heads)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None):
        width = self.heads * self.width
        attended = super().forward(*(one[..., :width] for one in (query, key, value)), mask)
        return torch.cat((attended, query[..., width:]), dim=-1)


class LateRefusal(MultiHeadAttention):
    """Is built with a width that the heads do not divide, and cannot be called."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__(d_model - d_model % num_heads, num_heads)


class Viewed(MultiHeadAttention):
    """Asserts nothing, and its view of all numbers fits a few lengths with rows that are wrong."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__(d_model - d_model % num_heads, num_heads)
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))
        self.o = nn.Linear(self.heads * self.width, d_model)


def test_assertion_about_heads_is_a_warning_without_a_likely_cause() -> None:
    report = attentest.check(MultiHeadAttention, clauses=[REFUSED, NAMED])
    assert report[REFUSED].status == "pass", report[REFUSED]
    verdict = report[NAMED]
    assert verdict.status == "warning", verdict
    assert "neither a ValueError nor an IndexError and does not name" in verdict.message
    assert "AssertionError: d_model must be divisible by num_heads" in verdict.message
    assert verdict.diagnosis == ()
    assert report.conforms


def test_reproduction_of_a_warning_raises_what_was_found() -> None:
    verdict = attentest.check(MultiHeadAttention, clauses=[NAMED])[NAMED]
    assert verdict.counterexample is not None
    with pytest.raises(AssertionError, match="must be divisible"):
        exec(verdict.counterexample.code, {"MultiHeadAttention": MultiHeadAttention})


def test_width_that_is_not_refused_is_a_violation() -> None:
    report = attentest.check(Rounding, "multi_head_attention", clauses=[REFUSED])
    assert report[REFUSED].status == "violation", report[REFUSED]
    assert not report.conforms


def test_width_that_the_first_call_refuses_is_a_warning() -> None:
    report = attentest.check(LateRefusal, "multi_head_attention", clauses=[REFUSED, NAMED])
    assert report[REFUSED].status == "pass", report[REFUSED]
    assert report[NAMED].status == "warning", report[NAMED]


def test_width_that_fits_by_chance_at_some_lengths_is_a_warning() -> None:
    report = attentest.check(Viewed, "multi_head_attention", clauses=[REFUSED, NAMED])
    assert report[REFUSED].status == "pass", report[REFUSED]
    assert report[NAMED].status == "warning", report[NAMED]
