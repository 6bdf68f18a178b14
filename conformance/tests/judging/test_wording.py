"""The wording of a refusal is a SHOULD: a warning, listed after all that is worse."""

import math

import pytest
import torch
from oracle_backend import OracleBackend
from torch import Tensor, nn

import attentest
from attentest.harness.errors import Shortcoming, Violation
from attentest.harness.subject import Subject
from attentest.judging.bench import Bench
from attentest.judging.examples import try_examples
from attentest.judging.registry import Check
from attentest.testing.draw import Draw
from attentest_spec.clauses import clauses

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
    """Rounds a width that the heads do not divide."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__(d_model - d_model % num_heads, num_heads)


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


def test_clauses_that_refuse_word_the_error_by_should() -> None:
    about = [one for one in clauses().values() if one.kind == "errors" and one.level == "MUST"]
    worded = [one.slug for one in about if "error that names" in one.text]
    assert worded == []


def examples(worse: bool) -> Check:
    """Return a check whose examples fall short, where some may do worse."""

    def body(subject: Subject, draw: Draw) -> None:
        if draw.integer(0, 10**9) % 4 == 3 and worse:
            raise Violation("it is not refused")
        subject.fall_short(Shortcoming("it is refused in other words"))

    return Check("attention.formula", body, 20, __name__, "body")


def test_violation_takes_precedence_over_wording() -> None:
    bench = Bench(OracleBackend(), shrink=False)
    with pytest.raises(Violation, match="it is not refused"):
        try_examples(bench, examples(worse=True), bench.subject())
    with pytest.raises(Shortcoming, match="other words"):
        try_examples(bench, examples(worse=False), bench.subject())
