"""A softmax in float32 inside float64: judged by its own rounding, and by no more than that."""

from dataclasses import replace

import numpy as np
import pytest
from proof import share

from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.harness.arithmetic import arithmetic
from attentest.harness.subject import Subject
from attentest.harness.tolerances import error_bound
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.suite.test_attention import test_numbers
from attentest.suite.test_attention.cases import draw_call
from attentest_spec import Sizes

SINGLE = {"softmax_arithmetic": "float32"}
CLAUSES = (
    "attention.formula",
    "attention.rows-sum-to-one",
    "attention.key-order",
    "attention.gradient",
    "multi_head_attention.formula",
    "encoder.layer-formula",
)


def built(specimen, choices=()):
    return reference_backend(REFERENCE_MODELS[specimen], dict(choices))


def status(backend, clause="attention.softmax-arithmetic"):
    return judge(Bench.for_status(backend), clause).status


@share(4)
@pytest.mark.parametrize("specimen", REFERENCE_MODELS)
@pytest.mark.parametrize("clause", CLAUSES)
def test_declared_arithmetic_conforms(specimen, clause):
    assert status(built(specimen, SINGLE), clause) == "pass"


@pytest.mark.parametrize("specimen", REFERENCE_MODELS)
def test_declaration_that_the_numbers_refute_is_a_violation(specimen):
    assert status(built(specimen)) == "pass"
    assert status(built(specimen, SINGLE)) == "deviation"
    assert status(replace(built(specimen), choices=SINGLE)) == "violation"
    assert status(replace(built(specimen, SINGLE), choices=built(specimen).choices)) == "violation"


def test_inputs_that_show_no_arithmetic_are_no_violation(monkeypatch):
    """One key has the weight 1 in every arithmetic."""

    def one_key(*given, lengths, **named):
        return draw_call(*given, lengths=(1, 1), **named)

    monkeypatch.setattr(test_numbers, "draw_call", one_key)
    assert status(built("plain", SINGLE)) == "deviation"


@pytest.mark.parametrize("specimen", REFERENCE_MODELS)
def test_rounded_softmax_violates_float64(specimen):
    undeclared = replace(built(specimen, SINGLE), choices=built(specimen).choices)
    assert status(undeclared, "attention.formula") == "violation"


def bound(component, declared, *inputs):
    subject = Subject(built("plain", declared))
    probe = subject.part(component, Sizes(d_model=4, heads=1))
    probe.parameters = {"gain": np.ones(4), "bias": np.zeros(4)}
    return arithmetic(probe), error_bound(probe, inputs, probe.expected(*inputs).output)


def test_tolerance_is_that_of_the_softmax_alone():
    rng = np.random.default_rng(1)
    query, key, value = rng.normal(size=(3, 1, 1, 5, 4))
    (_, exact), (coarse, rounded) = (
        bound("attention", one, query, key, value) for one in ({}, SINGLE)
    )
    assert coarse == "float32"
    assert exact < 1e-14
    assert 1e-8 < rounded < 1e-5
    assert bound("layer_norm", SINGLE, value[0]) == bound("layer_norm", {}, value[0])


def test_single_key_has_the_weight_one_in_any_precision():
    query, key, value = np.random.default_rng(2).normal(size=(3, 1, 1, 1, 4))
    assert bound("attention", SINGLE, query, key, value)[1] < 1e-14


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_score_beyond_float32_gives_a_finite_tolerance():
    query, key, value = np.random.default_rng(3).normal(size=(3, 1, 1, 5, 4))
    assert np.isfinite(bound("attention", SINGLE, 1e39 * query, key, value)[1])
