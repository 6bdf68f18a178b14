"""Checks of the chapter `feed_forward`."""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.judging.check import check
from attentest.testing.assertions import equal, finite, holds, matches, same_shape
from attentest.testing.common import (
    HALF_PRECISIONS,
    Call,
    dropout_keeps_mean,
    dropout_off_in_evaluation,
    half_precisions,
    matches_declared_biases,
    matches_declared_option,
    matches_in_precision,
    same_precision,
)
from attentest.testing.draw import Draw
from attentest.testing.dropout_rate import (
    build_linear,
    build_path,
    drops_at_the_rate,
    path_input,
)
from attentest.testing.gradients import agrees_with_differences, every_parameter_reached
from attentest.testing.invariants import agree_up_to_rounding, build_with_parameters
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, SizesInUse, at_sizes_in_use
from attentest_spec import CHOICES, Sizes
from attentest_spec.setting import Array, Floats

COMPONENT = "feed_forward"

PATH = {"inner.weight": 64.0, "outer.weight": 1 / 64}
"""The path of one number, steep enough that every activation lets it through as it is."""

GATED_PATH = {"gate.weight": -64.0, **PATH}
"""The same with a gate, which is wide open."""


def draw_sizes(draw: Draw) -> Sizes:
    """Draw a width and an inner width that differ."""
    sizes = Sizes(d_model=draw.integer(2, 6), d_ff=draw.choose((7, 11)), heads=1)
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
    """Build with drawn parameters, and draw x (B, S, D); `shape` fixes the first two."""
    sizes = sizes or draw_sizes(draw)
    parameters = draw.parameters(COMPONENT, sizes, precision=precision)
    probe = subject.part(COMPONENT, sizes, parameters=parameters, precision=precision)
    batch, length = shape or (draw.batch(), draw.length())
    return probe, draw.floats(batch, length, sizes.d_model, scale=scale, precision=precision)


def check_output(probe: Probe, x: Floats) -> Array:
    """Return the output, of the shape of x; demanded to be the reference's where it has a map."""
    output = probe.output(x)
    same_shape(output, x.shape)
    finite(output)
    if probe.parameters:
        matches(probe, x, actual=output)
    return output


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    shape = size.batch, size.length
    check_output(*build_loaded(subject, draw, sizes=size.sizes(subject), shape=shape))


@check(
    "feed_forward.formula",
    examples=10,
    in_use=at_sizes_in_use(_formula_in_use, replace(WIDE, inner=2048), MANY, LONG),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    check_output(*build_loaded(subject, draw, scale=_scale(subject, draw)))


def _scale(subject: Subject, draw: Draw) -> float:
    """Draw a magnitude of x; in float16 the product with a gate soon leaves the range."""
    if subject.precision == "float16" and subject.choices.feed_forward_gate != "none":
        return draw.choose((1.0, 0.1, 3.0))
    return draw.scale()


@check("feed_forward.activation")
def test_activation(subject: Subject, draw: Draw) -> None:
    if subject.precision in HALF_PRECISIONS:
        raise Absent(f"{subject.precision} does not distinguish activations")
    probe, x = build_loaded(subject, draw)
    names = [option.name for option in CHOICES["activation"].options]
    matches_declared_option(probe, x, actual=probe.output(x), choice="activation", others=names)


@check("feed_forward.gate")
def test_gate(subject: Subject, draw: Draw) -> None:
    probe, x = build_loaded(subject, draw, scale=2.0)
    actual = check_output(probe, x)
    if subject.choices.feed_forward_gate == "none":
        return
    for name in ("gate", "inner"):
        weight = f"{name}.weight"
        fresh = {weight: 2.0 * probe.parameters[weight]}
        probe.load({**probe.parameters, **fresh})
        matches(probe, x, actual=probe.output(x), what=f"output with twice the {weight}")
    holds(bool(as_floats(actual).any()), "The output is 0.", actual=actual)


@check("feed_forward.shapes")
def test_shapes(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    batch, length = draw.choose(((1, 1), (1, 0), (0, 1), (0, 0)))
    x = draw.floats(batch or draw.batch(), length or draw.length(), probe.sizes.d_model)
    same_precision(probe, check_output(probe, x))


@check("feed_forward.position-wise")
def test_position_wise(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    for length in (draw.length(), draw.long()):
        _position_wise(draw, probe, draw.choose((2, 3)), length)


def _position_wise(draw: Draw, probe: Probe, batch: int, length: int) -> None:
    x = draw.floats(batch, length, probe.sizes.d_model)
    together = check_output(probe, x)
    alone = np.zeros((batch, length), dtype=bool)
    alone[draw.integer(0, batch - 1), draw.integer(0, length - 1)] = True
    changed = np.where(alone[..., None], x, draw.floats(*x.shape, scale=30.0))
    agree_up_to_rounding(
        probe,
        x,
        actual=probe.output(changed),
        expected=together,
        rows=alone,
        what="output at a position after changing all others",
    )
    agree_up_to_rounding(
        probe,
        x,
        actual=probe.output(x[::-1, ::-1]),
        expected=together[::-1, ::-1],
        what="output for positions and samples in reverse",
    )


@check("feed_forward.activation-between")
def test_activation_between(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    x = draw.floats(4, draw.length(), probe.sizes.d_model, scale=3.0)
    x = np.round(x, 2)
    halved = cast(-x / 2, probe.precision)
    x = -2 * halved
    inputs = (x, halved, np.zeros_like(x))
    here, there, middle = (as_floats(check_output(probe, one)) for one in inputs)
    reach = largest(here - middle)
    if reach == 0 and not probe.parameters:
        raise Absent(f"the {COMPONENT} of {subject.name} is constant initially")
    bend = largest(here + 2 * there - 3 * middle)
    holds(
        bend > 1e-3 * reach,
        f"f(x) + 2 f(-x/2) differs from 3 f(0) by {bend:.3g} at most, and f(x) from f(0) by "
        f"{reach:.3g}: the map is affine.",
    )


@check("feed_forward.both-biases")
def test_both_biases(subject: Subject, draw: Draw) -> None:
    if subject.choices.feed_forward_bias == "none":
        raise Absent(f"{subject.name} declares no biases")
    probe, x = build_loaded(subject, draw)
    check_output(probe, np.zeros_like(x))


@check("feed_forward.feed-forward-bias")
def test_feed_forward_bias(subject: Subject, draw: Draw) -> None:
    probe, x = build_loaded(subject, draw)
    matches_declared_biases(probe, np.zeros_like(x), choice="feed_forward_bias")


@check("feed_forward.every-parameter-reached")
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    probe, x = build_loaded(subject, draw)
    every_parameter_reached(probe, x, draw=draw)
    agrees_with_differences(probe, x, draw=draw)


@check("feed_forward.gradient")
def test_gradient(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    x = draw.floats(draw.batch(), draw.length(), probe.sizes.d_model)
    check_output(probe, x)
    agrees_with_differences(probe, x, draw=draw)


@check("feed_forward.large-inputs")
def test_large_inputs(subject: Subject, draw: Draw) -> None:
    for precision in ("float64", "float32"):
        if precision not in subject.limits.precisions:
            continue
        probe = build_with_parameters(
            subject, draw, COMPONENT, draw_sizes(draw), precision=precision
        )
        x = draw.rng.uniform(-1e3, 1e3, size=(draw.batch(), draw.length(), probe.sizes.d_model))
        check_output(probe, np.round(x))
        check_output(probe, np.round(x) * 1e3)


@check("feed_forward.activation-survives-copies")
def test_activation_survives_copies(subject: Subject, draw: Draw) -> None:
    probe, x = build_loaded(subject, draw)
    before = check_output(probe, x)
    copies = {
        "a deep copy": lambda part: part.copied("deepcopy"),
        "a pickled copy": lambda part: part.copied("pickle"),
        "a part reloaded from the state": lambda part: part.reloaded(),
    }
    for name, make in copies.items():
        with suppress(Absent):  # a lambda in it cannot be pickled
            other = probe.become(f"making {name}", make)
            equal(other.output(x), before, what=f"output of {name}")


@check("feed_forward.dropout-only-in-training")
def test_dropout_only_in_training(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    dropout_off_in_evaluation(subject, draw, COMPONENT, sizes, draw.floats(2, 3, sizes.d_model))
    if subject.limits.dropout:
        if subject.choices.activation == "relu-squared":
            return  # dropout in front of it multiplies by a square, which looks as two sites do
        probe = build_linear(subject, draw, sizes.but(dropout=0.5))
        dropout_keeps_mean(probe, 1 + np.abs(draw.floats(1, 2, sizes.d_model)))
        path = PATH if subject.choices.feed_forward_gate == "none" else GATED_PATH
        probe = build_path(subject, COMPONENT, sizes, path)
        drops_at_the_rate(probe, path, path_input(sizes))


@check("feed_forward.float32")
def test_float32(subject: Subject, draw: Draw) -> None:
    matches_in_precision(lambda precision: _call(subject, draw, precision), "float32")


@check("feed_forward.half-precision")
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        matches_in_precision(lambda one: _call(subject, draw, one), precision)


def _call(subject: Subject, draw: Draw, precision: str) -> Call:
    probe, x = build_loaded(subject, draw, precision=precision)
    return probe, (x,)


@check("feed_forward.input-untouched")
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    # Every call compares its inputs before and after.
    check_output(probe, draw.floats(2, draw.length(), probe.sizes.d_model))
