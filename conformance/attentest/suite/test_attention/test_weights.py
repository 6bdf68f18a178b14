"""Checks of the chapter `attention`: the weights, and the output as a mean by them."""

import numpy as np

from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.judging.check import check
from attentest.suite.test_attention.cases import draw_call, draw_calls, steepness
from attentest.testing.assertions import finite, holds, matches, near
from attentest.testing.draw import Draw


@check("attention.weights-formula")
def test_weights_formula(subject: Subject, draw: Draw) -> None:
    for case in draw_calls(subject, draw):
        weights = case.weights()
        matches(
            case.probe,
            *case.inputs,
            actual=weights,
            pick=lambda answer: answer.weights,
            what="weights",
        )


@check("attention.rows-sum-to-one")
def test_rows_sum_to_one(subject: Subject, draw: Draw) -> None:
    for case in draw_calls(subject, draw):
        sums = case.weights().sum(axis=-1)
        matches(
            case.probe,
            *case.inputs,
            actual=sums,
            pick=lambda answer: as_floats(answer.weights).sum(axis=-1),
            what="sum of a row",
        )


@check("attention.weights-nonnegative")
def test_weights_nonnegative(subject: Subject, draw: Draw) -> None:
    for case in draw_calls(subject, draw):
        weights = case.weights()
        finite(weights, what="weights")
        low, high = weights.min(), weights.max()
        rounding = 1e-2 if case.probe.precision == "bfloat16" else 1e-5
        holds(
            low >= 0 and high <= 1 + rounding,
            f"Weights lie between {low:.6g} and {high:.6g}.",
            actual=weights,
        )


@check("attention.masked-weights-zero")
def test_masked_weights_zero(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, hiding=True)
    hidden = case.weights()[~case.keep]
    holds(not hidden.any(), f"A masked key has the weight {largest(hidden):.6g}.", actual=hidden)


@check("attention.convex-hull")
def test_convex_hull(subject: Subject, draw: Draw) -> None:
    for case in draw_calls(subject, draw):
        output = as_floats(case.output())
        seen = case.keep[..., None]
        values = case.value[..., None, :, :]
        low = np.where(seen, values, np.inf).min(axis=-2)
        high = np.where(seen, values, -np.inf).max(axis=-2)
        outside = np.maximum(low - output, output - high)
        near(
            subject,
            np.maximum(outside, 0.0),
            np.zeros_like(outside),
            terms=case.key.shape[-2],
            size=largest(case.value) * steepness(case),
            what="distance from the range of the values",
            precision=case.arithmetic,
        )


@check("attention.weights-used")
def test_weights_used(subject: Subject, draw: Draw) -> None:
    for case in draw_calls(subject, draw):
        weights = case.weights()
        near(
            subject,
            case.output(),
            weights @ case.value,
            terms=case.key.shape[-2],
            size=largest(case.value),
            what="output",
        )
