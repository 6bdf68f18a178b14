"""Checks of the chapter `generator`."""

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, largest, rounding
from attentest.judging.check import check
from attentest.testing.assertions import finite, holds, near, same_shape
from attentest.testing.common import (
    HALF_PRECISIONS,
    Call,
    matches_declared_biases,
    matches_declared_option,
    matches_in_precision,
    same_precision,
)
from attentest.testing.draw import Draw
from attentest.testing.gradients import agrees_with_differences, gradient_of, gradient_to
from attentest.testing.invariants import agree_up_to_rounding, build_with_parameters
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, WORDS, SizesInUse, at_sizes_in_use
from attentest_spec import CHOICES, Sizes
from attentest_spec.setting import Array, Floats

COMPONENT = "generator"


def draw_sizes(draw: Draw) -> Sizes:
    """Draw sizes whose vocabularies differ."""
    vocabulary = draw.choose((7, 13, 300))
    sizes = Sizes(
        d_model=draw.integer(2, 6),
        heads=1,
        source_vocabulary=11 if draw.subject.limits.own_vocabularies else vocabulary,
        target_vocabulary=vocabulary,
    )
    return draw.subject.limits.fitted(sizes)


def build_loaded(
    subject: Subject,
    draw: Draw,
    *,
    scale: float = 1.0,
    precision: str = "",
    sizes: Sizes | None = None,
    shape: tuple[int, int] | None = None,
) -> tuple[Probe, Floats]:
    """Build with drawn parameters, and draw x (B, T, D); `shape` fixes the first two."""
    sizes = sizes or draw_sizes(draw)
    parameters = draw.parameters(COMPONENT, sizes, precision=precision)
    probe = subject.part(COMPONENT, sizes, parameters=parameters, precision=precision)
    batch, length = shape or (draw.batch(), draw.length())
    return probe, draw.floats(batch, length, sizes.d_model, scale=scale, precision=precision)


def check_output(probe: Probe, x: Floats) -> Array:
    """Return the output, (B, T, V); demanded to be the reference's where it has a map."""
    output = probe.output(x)
    same_shape(output, (*x.shape[:-1], probe.sizes.target_vocabulary))
    finite(output)
    if probe.parameters:
        # A logit is rounded by its own size, and exp(logit - logsumexp) keeps that rounding
        # where a softmax has saturated: both are correct.
        logits = probe.expected(x, choices=probe.subject.choices.but(output="logits")).output
        near(
            probe.subject,
            output,
            as_floats(probe.expected(x).output),
            terms=probe.sizes.d_model + probe.sizes.target_vocabulary,
            size=1.0 + largest(logits),
            precision=probe.precision,
        )
    return output


def scale_to_logit(probe: Probe, x: Floats, size: float) -> Floats:
    """Return x scaled so that the largest logit without its bias has `size`."""
    reach = largest(x @ probe.parameters["weight"].T) or 1.0
    return cast(x * (size / reach), probe.precision)


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    shape = size.batch, size.length
    check_output(*build_loaded(subject, draw, sizes=size.sizes(subject), shape=shape))


@check(
    "generator.formula",
    examples=10,
    in_use=at_sizes_in_use(_formula_in_use, WIDE, MANY, LONG, WORDS),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    check_output(*build_loaded(subject, draw, scale=draw.choose((1.0, 1e-3, 30.0))))


@check("generator.output")
def test_output(subject: Subject, draw: Draw) -> None:
    if subject.precision in HALF_PRECISIONS:
        raise Absent(f"{subject.precision} does not distinguish the options of output")
    probe, x = build_loaded(subject, draw)
    names = [option.name for option in CHOICES["output"].options]
    matches_declared_option(probe, x, actual=probe.output(x), choice="output", others=names)


@check("generator.logit-scale")
def test_logit_scale(subject: Subject, draw: Draw) -> None:
    if subject.precision in HALF_PRECISIONS:
        raise Absent(f"{subject.precision} does not distinguish the options of logit_scale")
    probe, x = build_loaded(subject, draw, scale=3.0)
    names = [option.name for option in CHOICES["logit_scale"].options]
    matches_declared_option(probe, x, actual=probe.output(x), choice="logit_scale", others=names)


@check("generator.logit-cap")
def test_logit_cap(subject: Subject, draw: Draw) -> None:
    if subject.precision in HALF_PRECISIONS:
        raise Absent(f"{subject.precision} does not distinguish the options of logit_cap")
    probe, x = build_loaded(subject, draw)
    cap = subject.choices.logit_cap
    x = scale_to_logit(probe, x, draw.choose((4.0, 6.0 if cap == "none" else 1.5 * float(cap))))
    others = ("none", 30.0, 50.0, 2.0, 4.0)
    matches_declared_option(probe, x, actual=probe.output(x), choice="logit_cap", others=others)


@check("generator.generator-bias")
def test_generator_bias(subject: Subject, draw: Draw) -> None:
    probe, x = build_loaded(subject, draw)
    matches_declared_biases(probe, np.zeros_like(x), choice="generator_bias")


@check("generator.normalised")
def test_normalised(subject: Subject, draw: Draw) -> None:
    kind = subject.choices.output
    if kind == "logits":
        raise Absent("logits are not normalised")
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    x = draw.floats(draw.batch(), draw.length(), probe.sizes.d_model, scale=3.0)
    output = as_floats(check_output(probe, x))
    powers = output if kind == "probabilities" else np.exp(output)
    # The exponential turns the rounding of a logarithm, which is as large as it, into a share.
    size = 1.0 if kind == "probabilities" else 1.0 + largest(output)
    terms = probe.sizes.d_model + output.shape[-1]
    sums = powers.sum(axis=-1)
    near(subject, sums, np.ones_like(sums), terms=terms, size=size, what="sum of a row")
    low, high = float(output.min()), float(output.max())
    slack = rounding(probe.precision, terms) * size
    in_range = low >= 0 if kind == "probabilities" else high <= slack
    holds(in_range, f"The {kind} lie between {low:.6g} and {high:.6g}.", actual=output)


@check("generator.shapes")
def test_shapes(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    batch, length = draw.choose(((1, 1), (1, 0), (0, 1), (0, 0)))
    x = draw.floats(batch or draw.batch(), length or draw.length(), probe.sizes.d_model)
    same_precision(probe, check_output(probe, x))


@check("generator.position-wise")
def test_position_wise(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    length = draw.choose((draw.length(), draw.long()))
    x = draw.floats(draw.choose((2, 3)), length, probe.sizes.d_model)
    together = check_output(probe, x)
    alone = np.zeros(x.shape[:-1], dtype=bool)
    alone[draw.integer(0, x.shape[0] - 1), draw.integer(0, x.shape[1] - 1)] = True
    changed = np.where(alone[..., None], x, draw.floats(*x.shape, scale=10.0))
    agree_up_to_rounding(
        probe,
        x,
        actual=probe.output(changed),
        expected=together,
        rows=alone,
        what="output at a step after changing all others",
    )


@check("generator.stable-for-large-logits")
def test_stable_for_large_logits(subject: Subject, draw: Draw) -> None:
    probe, x = build_loaded(subject, draw)
    reach = 1e3 if subject.precision == "float16" else 1e6
    check_output(probe, scale_to_logit(probe, x, draw.choose((reach, 1e3, 800.0, 100.0))))


@check("generator.gradient")
def test_gradient(subject: Subject, draw: Draw) -> None:
    probe, x = build_loaded(subject, draw)
    large = scale_to_logit(probe, x, draw.choose((1e3, 3e3)))
    gradient = probe.vjp((large,), draw.floats(*x.shape[:-1], probe.sizes.target_vocabulary))
    gradient_to(gradient, 0, "input", x.shape)
    for name in probe.parameters:
        gradient_of(probe, gradient, name)
    agrees_with_differences(probe, x, draw=draw)


@check("generator.float32")
def test_float32(subject: Subject, draw: Draw) -> None:
    matches_in_precision(lambda precision: _call(subject, draw, precision), "float32")


def _call(subject: Subject, draw: Draw, precision: str) -> Call:
    probe, x = build_loaded(subject, draw, precision=precision)
    return probe, (x,)
