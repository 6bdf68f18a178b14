"""Identification of whole decoder-only models: their outputs alone show the settings."""

from dataclasses import replace

import pytest
from planted import BASE, CHANGES, OPTIONS
from proof import share
from reference_backends import built, sole

from attentest.analysis.identify import CANNOT_TELL, MEASURED, identify
from attentest.analysis.identify.language import AXES
from attentest.faults.reference_models import Plain, reference_backend
from attentest.studies.comparison.compare import compare
from attentest_spec import Choices

SEVERAL = {
    **BASE,
    "block_norms": "sandwich",
    "rms_weight": "one-plus-weight",
    "query_key_norm": "per-head",
    "rotary_base": 123_456.0,
    "score_scale": 0.21,
    "score_cap": 43.0,
    "logit_cap": 17.0,
    "attention_window": "with-query",
    "tying": "all-three",
}
"""Many unusual settings at once."""

OF_SCORES = ("attention_rotary", "rotary_pairs", "rotary_base", "score_scale", "attention_window")


def hidden(settings, model="plain", **declared):
    """Return a backend of a whole model alone, which declares nothing of its settings."""
    return replace(sole(built(model, dict(settings)), "language_model"), choices=declared)


@pytest.mark.proof
def test_settings_are_measured_from_outputs_alone():
    found = identify(hidden(SEVERAL, "fused"))
    truth = Choices.of(SEVERAL)
    shown = {name: one.measured for name, one in found.items() if one.status == MEASURED}
    assert {name: truth[name] for name in shown} == shown
    assert SEVERAL.keys() - {"attention_causality"} <= shown.keys()
    assert {found[name].status for name in AXES} == {MEASURED, CANNOT_TELL}


@share(2)
@pytest.mark.parametrize("buckets", ["buckets", "buckets-of-the-past"])
def test_buckets_are_told_apart_by_a_long_text(buckets):
    settings = {**OPTIONS["buckets"], "relative_bias": buckets}
    assert identify(hidden(settings))["relative_bias"].measured == buckets


class Squared(Plain):
    """Attention whose weights are squared."""

    def mix(self, weights, value):
        return super().mix(weights * weights, value)


@pytest.mark.proof
def test_mistake_in_attention_is_no_option_and_leaves_the_norms():
    backend = sole(reference_backend(Squared, OPTIONS["pairs"]), "language_model")
    found = identify(replace(backend, choices={}))
    assert {found[name].status for name in OF_SCORES} == {CANNOT_TELL}
    assert all("closest combination" in found[name].reason for name in OF_SCORES)
    assert (found["norm_kind"].measured, found["activation"].measured) == ("rms", "silu")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["window"])
def test_comparison_names_the_setting_that_one_side_does_not_declare(name):
    pair = [hidden(one, **BASE) for one in (BASE, OPTIONS[name])]
    found = compare(*(replace(one, name=letter) for one, letter in zip(pair, "ab", strict=True)))
    (explanation,) = found.explanations
    assert [one.choice for one in explanation.options] == list(CHANGES[name])
    assert [row.choice for row in found.choices if row.differs] == list(CHANGES[name])
