"""The measurement of the rate of dropout: correct code anywhere it drops, and wrong rates."""

from itertools import product
from math import exp

import jaxtyping
import numpy as np
import pytest
import torch
from proof import share
from torch import Tensor
from torch.nn import functional

from attentest.faults import fault_of, inject, with_faults
from attentest.faults.reference_models import REFERENCE_MODELS, Hooks, reference_backend
from attentest.faults.reference_models.modules import Node
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.testing.dropout_rate import (
    FALSE_ALARM,
    RATE,
    SAMPLES,
    path_input,
    scored_input,
    tolerance,
)
from attentest_spec import Sizes

torch.set_num_threads(1)

Plain = REFERENCE_MODELS["plain"]
CLAUSES = (
    "feed_forward.dropout-only-in-training",
    "multi_head_attention.deterministic",
    "encoder.dropout-on-sublayers",
    "decoder.dropout-on-sublayers",
)


class InsideAttentionNowhere(Plain):
    def drop_weights(self, module: Node, weights: Tensor) -> Tensor:
        return weights


class OnTheOutputOfAttention(InsideAttentionNowhere):
    def multi_head_attention(self, module: Node, *inputs: Tensor | None) -> Tensor:
        return self.dropout(module, super().multi_head_attention(module, *inputs))


class OnWeightsAndOutput(Plain):
    def multi_head_attention(self, module: Node, *inputs: Tensor | None) -> Tensor:
        return self.dropout(module, super().multi_head_attention(module, *inputs))


class OnProjectedValues(InsideAttentionNowhere):
    def project(self, module: Node, name: str, x: Tensor) -> Tensor:
        projected = super().project(module, name, x)
        return self.dropout(module, projected) if name == "value" else projected


class OnScores(InsideAttentionNowhere):
    """Drop scores before the softmax: what is dropped has a weight still."""

    def bias_scores(self, module: Node, raw: Tensor) -> Tensor:
        return self.dropout(module, super().bias_scores(module, raw))


class WholeRows(Plain):
    """Drop what a sample has as a whole, as stochastic depth does."""

    def drop(self, x: Tensor, rate: float) -> Tensor:
        return x * functional.dropout(x.new_ones(len(x), *[1] * (x.dim() - 1)), rate)


class SameForTheBatch(Plain):
    """Draw one pattern for all samples of a call."""

    def drop(self, x: Tensor, rate: float) -> Tensor:
        return x * functional.dropout(torch.ones_like(x[:1]), rate)


class BeforeTheActivation(Plain):
    def drop_inner(self, module: Node, x: Tensor) -> Tensor:
        return x

    def expand(self, module: Node, x: Tensor) -> Tensor:
        return self.dropout(module, super().expand(module, x))


class OnTheGate(BeforeTheActivation):
    def open_gate(self, module: Node, x: Tensor) -> Tensor:
        return self.dropout(module, super().open_gate(module, x))


class OnTheInputOfTheNetwork(Plain):
    def feed_forward(self, module: Node, x: Tensor) -> Tensor:
        return super().feed_forward(module, self.dropout(module, x))


class WithoutSublayers(Plain):
    def drop_branch(self, module: Node, branch: Tensor) -> Tensor:
        return branch


class FixedPattern(Plain):
    """Drop by one pattern, drawn from a seed that every call sets."""

    def drop(self, x: Tensor, rate: float) -> Tensor:
        drawn = torch.rand(x[:1].shape, generator=torch.Generator().manual_seed(4))
        return x * (drawn >= rate) / (1 - rate)


class Rough(Plain):
    """Round more than is counted from the number of terms, and less than is measured."""

    def multi_head_attention(self, module: Node, *inputs: Tensor | None) -> Tensor:
        return super().multi_head_attention(module, *inputs) * (1 + 24 * 2.0**-52)


CORRECT = (
    Plain,
    Rough,
    InsideAttentionNowhere,
    OnTheOutputOfAttention,
    OnWeightsAndOutput,
    OnProjectedValues,
    WholeRows,
    SameForTheBatch,
    BeforeTheActivation,
)


def judged(backend, clause, seed=0, **settings):
    return judge(Bench.for_status(backend, seed=seed, **settings), clause)


def of(model: type[Hooks], **choices: str):
    return reference_backend(model, choices)


@share(12)
@pytest.mark.parametrize(
    ("model", "clause"),
    list(product(CORRECT, CLAUSES)),
)
def test_correct_code_conforms_wherever_it_drops(model, clause, monkeypatch):
    # The same functions are called for each: their shapes are checked once, which takes as long.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", model is not Plain)
    verdict = judged(of(model), clause)
    assert verdict.status == "pass", verdict.message


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_correct_layer_conforms_under_choices(activation, placement):
    backend = of(Plain, activation=activation, norm_placement=placement)
    verdict = judged(backend, "encoder.dropout-on-sublayers")
    assert verdict.status == "pass", verdict.message


@pytest.mark.parametrize("gate", ["none", "gated"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "relu-squared"])
@pytest.mark.parametrize("model", [BeforeTheActivation, OnTheGate, OnTheInputOfTheNetwork])
def test_dropout_before_the_activation_conforms(model, activation, gate):
    backend = of(model, activation=activation, feed_forward_gate=gate)
    for precision in ("float64", "float32", "bfloat16", "float16"):
        verdict = judged(backend, "feed_forward.dropout-only-in-training", precision=precision)
        assert verdict.status == "pass", verdict.message


def test_layer_with_dropout_before_a_square_conforms():
    backend = of(BeforeTheActivation, activation="relu-squared")
    verdict = judged(backend, "encoder.dropout-on-sublayers")
    assert verdict.status == "pass", verdict.message


@pytest.mark.proof
@pytest.mark.parametrize("gate", ["none", "gated"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("slug", ["not-scaled", "rate-doubled", "scaled-by-the-nominal-rate"])
def test_wrong_rate_of_the_network_is_detected_under_choices(slug, activation, gate):
    fault = fault_of(f"feed_forward.dropout-{slug}")
    wrong = of(with_faults(Plain, fault), activation=activation, feed_forward_gate=gate)
    for seed in range(3):
        verdict = judged(wrong, fault.clause, seed)
        assert verdict.status == "violation", verdict.message


@pytest.mark.parametrize("clause", CLAUSES[:3])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_correct_code_conforms_in_coarse_precisions(clause, precision):
    verdict = judged(of(REFERENCE_MODELS["fused"]), clause, precision=precision)
    assert f"rate of {RATE}" not in verdict.message
    assert verdict.status == "pass" or precision == "bfloat16", verdict.message


@pytest.mark.proof
def test_pattern_that_never_changes_is_not_judged():
    message = judged(of(FixedPattern), "encoder.dropout-on-sublayers").message
    assert f"rate of {RATE}" not in message


@share(2, rest=1)
@pytest.mark.parametrize(
    "slug",
    [
        "feed_forward.dropout-rate-doubled",
        "feed_forward.dropout-scaled-by-the-nominal-rate",
        "multi_head_attention.dropout-rate-doubled",
        "encoder.dropout-rate-doubled",
        "decoder.dropout-rate-doubled",
        "encoder.attention-dropout-ignored",
        "decoder.attention-dropout-ignored",
    ],
)
def test_wrong_rate_is_detected_with_every_seed(slug):
    fault = fault_of(slug)
    for model in fault.models:
        for seed in range(2):
            verdict = judged(inject(fault, model), fault.clause, seed)
            assert verdict.status in ("violation", "warning"), verdict.message


@pytest.mark.proof
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_wrong_rate_is_reported_with_its_numbers(factor):
    class Other(Plain):
        def dropout_rate(self) -> float:
            return super().dropout_rate() * factor

    verdict = judged(of(Other), "multi_head_attention.deterministic")
    assert verdict.status in ("violation", "error")
    verdict = judged(of(Other), "feed_forward.dropout-only-in-training")
    assert verdict.status in ("violation", "error")


@pytest.mark.parametrize("seed", range(3))
def test_dropout_before_the_softmax_is_detected_with_every_seed(seed):
    verdict = judged(of(OnScores), "multi_head_attention.deterministic", seed, effort=0.1)
    assert verdict.status == "violation", verdict.message


def test_path_input_is_equal_rows_from_one_to_minus_one():
    rows = path_input(Sizes(d_model=5), length=2)
    assert rows.tolist() == [[[1.0, 0.5, 0.0, -0.5, -1.0]] * 2]


def test_scored_input_has_no_number_in_its_first_row():
    rows = scored_input(Sizes(d_model=5))
    assert rows.tolist() == [[[0.0, 0.5, 0.0, -0.5, -1.0], [1.0, 0.5, 0.0, -0.5, -1.0]]]


def test_tolerance_is_that_of_the_false_alarm():
    assert 2 * exp(-2 * SAMPLES * tolerance(SAMPLES) ** 2) == pytest.approx(FALSE_ALARM)
    assert tolerance(SAMPLES) < tolerance(SAMPLES // 2)
    assert 40 * FALSE_ALARM < 1e-9
    # A rate that is twice as large is further from the share than the tolerance and six deviations.
    deviation = (0.5 * 0.5 / SAMPLES) ** 0.5
    assert abs((1 - RATE) - (1 - 2 * RATE)) > tolerance(SAMPLES) + 6 * deviation


def test_share_of_correct_code_stays_far_inside_the_tolerance():
    rng = np.random.default_rng(5)
    shares = rng.binomial(SAMPLES, 1 - RATE, size=100_000) / SAMPLES
    assert np.abs(shares - (1 - RATE)).max() < 0.7 * tolerance(SAMPLES)
