"""Checks of the gradient of the loss, of extreme logits, and of narrow formats."""

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.judging.check import check
from attentest.suite.test_loss.cases import (
    check_loss,
    closed_form,
    draw_case,
    number,
    pulled_back,
    scales,
    to_logits,
)
from attentest.testing.assertions import near
from attentest.testing.common import Call, half_precisions, matches_in_precision
from attentest.testing.draw import Draw


@check("loss.gradient")
def test_gradient(subject: Subject, draw: Draw) -> None:
    probe, output, target = draw_case(subject, draw, scale=draw.choose(scales(subject, 3.0)))
    pulled = pulled_back(probe, output, target)
    near(
        subject,
        to_logits(subject.choices.loss_input, output, pulled),
        closed_form(probe, output, target),
        what="gradient of the logits",
        terms=output.shape[-1],
        size=(1.0 + largest(output)) / number(probe, target),
    )


@check("loss.gradient-sums-to-zero")
def test_gradient_sums_to_zero(subject: Subject, draw: Draw) -> None:
    if subject.choices.loss_input != "logits":
        raise Absent("the loss takes no logits")
    for scale in (1.0, 10.0):
        probe, output, target = draw_case(subject, draw, scale=scale)
        sums = pulled_back(probe, output, target).sum(axis=-1)
        near(
            subject,
            sums,
            np.zeros_like(sums),
            what="sum of the gradient over the vocabulary",
            terms=output.shape[-1],
            size=(1.0 + largest(output)) / number(probe, target),
        )


@check("loss.large-logits")
def test_large_logits(subject: Subject, draw: Draw) -> None:
    if subject.choices.loss_input == "probabilities":
        raise Absent("the loss takes probabilities, which are at most 1")
    reach = draw.choose((1e4, 1e3, 200.0))
    # A sum of a few such logits is beyond float16.
    narrow = subject.precision == "float16"
    probe, output, target = draw_case(subject, draw, scale=0.1 if narrow else 1.0)
    large = cast(output * (reach * (0.1 if narrow else 1.0)), subject.precision)
    if subject.choices.loss_input == "log-probabilities":
        # Words of almost no probability, next to one that has all of it: exp(-50) is no digit of 1.
        others = np.arange(large.shape[-1]) > 0
        large = cast(-(np.abs(as_floats(large)) + 50.0) * others, subject.precision)
    check_loss(probe, large, target)
    if "gradient" in probe.part.capabilities:
        pulled_back(probe, large, target)


@check("loss.float32")
def test_float32(subject: Subject, draw: Draw) -> None:
    matches_in_precision(lambda precision: _call(subject, draw, precision), "float32")


@check("loss.half-precision")
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        matches_in_precision(lambda one: _call(subject, draw, one), precision)


def _call(subject: Subject, draw: Draw, precision: str) -> Call:
    probe, output, target = draw_case(subject, draw, precision=precision)
    return probe, (output, target)
