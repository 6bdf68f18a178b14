"""Comparisons with the reference: tolerances, amplification and refusals."""

from typing import Any

import numpy as np
import pytest
from oracle_backend import probe

from attentest.harness.errors import Violation
from attentest.harness.subject import Probe
from attentest.harness.tolerances import error_bound, fits, largest
from attentest.testing.assertions import matches
from attentest_spec import Sizes
from attentest_spec.precision import epsilon

EPS = 2.0**-52
NAN, INF = np.nan, np.inf
EMPTY = np.zeros((2, 0))


def array(*values: float) -> np.ndarray:
    return np.array(values)


# Bounds of the oracle's answers

PRIMES = Sizes(d_model=14, heads=2, d_ff=23, layers=3, source_vocabulary=11, target_vocabulary=11)
X = np.random.default_rng(3).normal(size=(2, 5, 14))
TERMS = [
    ("layer_norm", (X,), 14),
    ("positional_encoding", (X,), 14),
    ("generator", (X,), 14),
    ("multi_head_attention", (X, X, X, None), 14 + 28 + 14),
    ("feed_forward", (X,), 14 + 23),
    ("encoder_layer", (X, None), 42 + 23 + 56),
    ("encoder", (X, None), 3 * (42 + 23 + 56)),
    ("decoder_layer", (X, X, None, None), 2 * 42 + 23 + 84),
    ("decoder", (X, X, None, None), 3 * (2 * 42 + 23 + 84)),
]


@pytest.mark.parametrize(("component", "inputs", "terms"), TERMS, ids=[row[0] for row in TERMS])
def test_terms_are_those_of_the_longest_path(component: str, inputs: Any, terms: int) -> None:
    part = probe(component, PRIMES)
    bound = error_bound(part, inputs, array(2.0), difference=0.0)
    assert bound == pytest.approx(4 * EPS * 2.0 * terms**0.5, rel=1e-12, abs=0.0)


def test_terms_of_calls_without_a_model_width() -> None:
    query, key = np.zeros((1, 1, 3, 14)), np.zeros((1, 1, 17, 14))
    part = probe("attention", PRIMES)
    bound = error_bound(part, (query, key, key, None), array(1.0), difference=0.0)
    assert bound == pytest.approx(4 * EPS * (14 + 17) ** 0.5, rel=1e-12, abs=0.0)
    part, tokens = probe("model", PRIMES), np.ones((2, 19), dtype=np.int64)
    bound = error_bound(part, (tokens, tokens[:, :2]), array(1.0), difference=0.0)
    path = 3 * (3 * (28 + 19) + 2 * 23 + 140)
    assert bound == pytest.approx(4 * EPS * path**0.5, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(
    ("inputs", "length"),
    [((4,), 1), ((np.zeros(9),), 1), ((np.zeros((2, 9)),), 9), ((np.zeros((2, 9, 5)),), 9)],
)
def test_length_is_the_longest_axis_behind_the_samples(inputs: Any, length: int) -> None:
    part = probe("attention", PRIMES)
    bound = error_bound(part, inputs, array(1.0), difference=0.0)
    assert bound == pytest.approx(4 * EPS * (14 + length) ** 0.5, rel=1e-12, abs=0.0)


def looked_up(precision: str = "float64") -> tuple[Probe, np.ndarray, np.ndarray, float]:
    """Return an embedding without scale, tokens, its answer, and the bound before amplification.

    A table's row changes by as much as its parameter does, so amplification doubles the bound.
    """
    part = probe("embedding", PRIMES.but(d_model=9), precision=precision, embedding_scale="none")
    tokens = np.array([[1, 4, 2]])
    answer = part.expected(tokens).output
    return part, tokens, answer, 12 * epsilon(precision) * float(np.abs(answer).max())


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
def test_amplification_of_a_linear_map_is_its_size(precision: str) -> None:
    part, tokens, answer, plain = looked_up(precision)
    kept = dict(part.parameters)
    assert error_bound(part, (tokens,), answer) == pytest.approx(2 * plain, rel=1e-6, abs=0.0)
    assert all(part.parameters[name] is values for name, values in kept.items())


def test_amplification_is_measured_from_half_of_the_tolerance_on() -> None:
    part, tokens, answer, plain = looked_up()
    assert error_bound(part, (tokens,), answer, difference=plain / 2) == plain
    beyond = error_bound(part, (tokens,), answer, difference=plain * 0.5001)
    assert beyond == pytest.approx(2 * plain, rel=1e-6, abs=0.0)


def test_amplification_is_the_same_at_every_call() -> None:
    part = probe("encoder", PRIMES)
    answer = part.expected(X, None).output
    assert error_bound(part, (X, None), answer) == error_bound(part, (X, None), answer)


def test_amplification_is_measured_only_where_it_may_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    part, tokens, answer, plain = looked_up()
    asked: list[Any] = []
    oracle = Probe.expected
    monkeypatch.setattr(Probe, "expected", lambda *a, **k: asked.append(a) or oracle(*a, **k))
    choices = part.subject.choices
    assert fits(part, tokens, actual=answer + 0.4 * plain, choices=choices)
    matches(part, tokens, actual=answer + 0.4 * plain)
    assert len(asked) == 2
    assert part.subject.budget == pytest.approx(0.4, rel=1e-2)
    assert fits(part, tokens, actual=answer + 0.6 * plain, choices=choices)
    matches(part, tokens, actual=answer + 0.6 * plain)
    assert len(asked) > 4
    assert part.subject.budget == pytest.approx(0.4, rel=1e-2)


def test_amplification_moves_inputs_and_parameters() -> None:
    part, x = probe("positional_encoding", PRIMES, positional_encoding="none"), X
    unit = 4 * EPS * 14**0.5
    bound = error_bound(part, (x,), x)
    assert bound == pytest.approx(2 * unit * largest(x), rel=1e-6, abs=0.0)


def test_amplification_of_a_steep_norm_follows_its_slope() -> None:
    part = probe("layer_norm", PRIMES, norm_epsilon=0.0)
    flat = 1.0 + 1e-6 * X
    steep = error_bound(part, (flat,), part.expected(flat).output)
    gentle = error_bound(part, (X,), part.expected(X).output)
    assert 1e4 * gentle < steep < 1e9 * gentle


def test_amplification_leaves_out_what_is_not_finite() -> None:
    part = probe("attention", PRIMES)
    inputs = (*np.random.default_rng(5).normal(size=(3, 1, 1, 2, 14)), np.zeros((1, 1, 1, 2), bool))
    assert np.isnan(part.expected(*inputs).output).all()
    assert error_bound(part, inputs, part.expected(*inputs).output) == 0.0


# Equality with the oracle


def test_oracles_own_answer_matches() -> None:
    for component, inputs, _ in TERMS:
        part = probe(component, PRIMES)
        matches(part, *inputs, actual=part.output(*inputs))
        assert part.subject.budget == 0.0


def test_matches_tolerance_is_that_of_correct_code() -> None:
    part, tokens, answer, _ = looked_up()
    bound = error_bound(part, (tokens,), answer)
    place = np.zeros_like(answer)
    place[0, 1, 3] = 1.0
    matches(part, tokens, actual=answer + 0.98 * bound * place)
    assert 0.9 < (part.subject.budget or 0.0) <= 1.0
    with pytest.raises(Violation, match=r"^The output differs .* at \(0, 1, 3\)"):
        matches(part, tokens, actual=answer + 1.02 * bound * place)
    with pytest.raises(Violation, match=r"^The rows differs"):
        matches(part, tokens, actual=answer - 1.02 * bound * place, what="rows")


@pytest.mark.parametrize("bad", [NAN, INF])
def test_matches_refuses_what_is_no_number(bad: float) -> None:
    part, tokens, answer, _ = looked_up()
    answer[0, 2, 0] = bad
    with pytest.raises(Violation):
        matches(part, tokens, actual=answer)
    matches(part, tokens, actual=answer, rows=np.array([[True, True, False]]))


def test_matches_refuses_another_shape() -> None:
    part, tokens, answer, _ = looked_up()
    for actual in (answer[0], answer[:, :2], np.concatenate([answer, answer])):
        with pytest.raises(Violation, match=r"^The table has the shape"):
            matches(part, tokens, actual=actual, what="table")


def test_matches_judges_under_the_choices_given() -> None:
    part, tokens, answer, plain = looked_up()
    scaled = part.subject.choices.but(embedding_scale="sqrt-d")
    matches(part, tokens, actual=3 * answer + 5.7 * plain, choices=scaled)
    beyond = 3 * answer + 6.3 * plain
    for actual, choices in ((3 * answer, None), (answer, scaled), (beyond, scaled)):
        with pytest.raises(Violation):
            matches(part, tokens, actual=actual, choices=choices)


def test_matches_takes_the_output_or_what_is_picked() -> None:
    part = probe("attention", PRIMES)
    inputs = (*np.random.default_rng(5).normal(size=(3, 1, 1, 2, 14)), None)
    output, weights = part.expected(*inputs)
    matches(part, *inputs, actual=output)
    matches(part, *inputs, actual=weights, pick=lambda answer: answer.weights)
    with pytest.raises(Violation):
        matches(part, *inputs, actual=output, pick=lambda answer: answer.weights)
    plain = error_bound(part, inputs, weights, difference=0.0)
    matches(part, *inputs, actual=weights + 0.9 * plain, pick=lambda answer: answer.weights)


def test_matches_asks_the_method_named() -> None:
    part, source = probe("model", PRIMES), np.array([[1, 2, 3]])
    memory = part.expected(source, method="encode").output
    noisy = memory + 1e-13 * np.sign(memory)  # beyond the plain bound, within the measured one
    matches(part, source, actual=noisy, method="encode")
    assert fits(part, source, actual=noisy, choices=part.subject.choices, method="encode")
    with pytest.raises(Violation):
        matches(part, source, actual=memory + 1e-6, method="encode")


def test_fits_says_what_matches_demands() -> None:
    part, tokens, answer, plain = looked_up()
    own, scaled = part.subject.choices, part.subject.choices.but(embedding_scale="sqrt-d")
    assert fits(part, tokens, actual=answer, choices=own)
    assert fits(part, tokens, actual=answer + 1.9 * plain, choices=own)
    assert not fits(part, tokens, actual=answer + 2.1 * plain, choices=own)
    assert not fits(part, tokens, actual=answer, choices=scaled)
    assert fits(part, tokens, actual=3 * answer + 5.7 * plain, choices=scaled)
    assert not fits(part, tokens, actual=3 * answer + 6.3 * plain, choices=scaled)
    assert not fits(part, tokens, actual=answer[:, :2], choices=own)
    zeros = probe("embedding", PRIMES)
    zeros.parameters = {"weight": np.zeros((11, 14))}
    assert fits(zeros, tokens, actual=np.zeros((1, 3, 14)), choices=own)
    answer[0, 2] = NAN
    assert not fits(part, tokens, actual=answer, choices=own)
    assert fits(part, tokens, actual=answer, choices=own, rows=np.array([[True, True, False]]))
