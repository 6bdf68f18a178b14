"""Dropout and biases that code builds in ways of its own: inferred, said and honoured."""

import pytest
from folders import SUPPORT

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
