"""Pairs of mistakes: which faults are combined."""

import pytest

from attentest.analysis.diagnosis import BrokenClause
from attentest.analysis.diagnosis.variants import Variant, pairs, variant_named
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.judging.bench import Bench
from attentest_spec import Choices
from attentest_spec.torch import of_function

EPSILON = "rms_norm.epsilon-of-another-library"


def reference():
    return reference_backend(REFERENCE_MODELS["plain"], {})


def silent():
    return of_function(lambda x: x, "rms_norm")


@pytest.mark.parametrize(("build", "expected"), [(silent, False), (reference, True)])
def test_fault_in_a_choice_that_is_not_declared_is_not_combined(build, expected):
    subject = Bench(build()).subject("rms_norm")
    broken = BrokenClause(subject, "rms_norm", "rms_norm.formula", (), "")
    variant = variant_named((EPSILON,), subject.choices)
    assert broken.is_about_what_is_declared(variant) is expected


def test_words_of_a_pair_are_one_sentence():
    subject = Bench(reference()).subject("rms_norm")
    pair = variant_named(("rms_norm.sum-for-mean", EPSILON), subject.choices)
    first, second = pair.text.split(" together with ")
    assert not first.endswith(".")
    assert second.endswith(".")


def test_fault_of_an_option_is_combined_with_that_option_alone():
    option = Variant({"smoothed_mass": "other-real-words"}, (), Choices())
    pad, target = "loss.pad-word-shared", "loss.target-without-its-share"
    together = [one.names for one in pairs([option], "loss")]
    assert ("smoothed_mass=other-real-words", pad) in together
    assert option.combined(variant_named((target,), Choices())) is None
