"""Checks of the chapter `layer_norm`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attentest.cases import HALVES, Call, halves, precise, same_precision, shows
from attentest.checks import check
from attentest.compare import as_floats, finite, holds, largest, matches, same_shape
from attentest.draw import Draw
from attentest.gradients import agrees_with_differences, gradient_to
from attentest.laws import alike, prepared
from attentest.outcome import Absent
from attentest.subject import Probe, Subject, cast
from attentest_spec import Sizes
from attentest_spec.choices import Value
from attentest_spec.precision import largest as largest_of
from attentest_spec.setting import Array, Floats

_LEVELS = (0.0, 3.0, -2.0)
"""Constant rows whose mean is exact, so that nothing is left to be blown up by 1 / epsilon."""

_OTHER_EPSILONS = (1e-5, 1e-6, 1e-12, 0.0)
"""What libraries default to."""


@dataclass(frozen=True)
class Case:
    """One call of a layer norm on x (B, S, D); `loaded` where it has a parameter map."""

    probe: Probe
    x: Floats
    loaded: bool

    def output(self) -> Array:
        """Return the output for x, demanded to be of its shape."""
        found = self.probe.output(self.x)
        same_shape(found, self.x.shape)
        return found

    def right(self) -> Array:
        """Return the output for x, demanded to be the oracle's."""
        found = self.output()
        matches(self.probe, self.x, actual=found)
        return found


def built(subject: Subject, draw: Draw, width: int, precision: str = "") -> tuple[Probe, bool]:
    """Build a norm with drawn parameters; a bare callable has the gain and bias of birth."""
    probe = prepared(
        subject, draw, "layer_norm", Sizes(d_model=width, heads=1), precision=precision
    )
    loaded = bool(probe.parameters)
    if not loaded:
        probe.parameters = newborn(width)
    return probe, loaded


def newborn(width: int) -> dict[str, Floats]:
    """Return the parameters that a norm is born with."""
    return {"gain": np.ones(width), "bias": np.zeros(width)}


def drawn(
    subject: Subject,
    draw: Draw,
    *,
    scale: float = 0.0,
    offset: float = 0.0,
    widths: tuple[int, int] = (2, 12),
    shape: Sequence[int] = (),
    precision: str = "",
) -> Case:
    """Draw a call; every row has columns apart, about one `scale` wide around `offset` of them."""
    batch, length = shape or (draw.batch(), draw.length())
    probe, loaded = built(subject, draw, draw.integer(*widths), precision)
    width = probe.sizes.d_model
    rows = np.round(draw.rng.normal(size=(batch, length, width)), 2)
    flat = np.ptp(rows, axis=-1) < 0.5
    rows[..., 0] += np.where(flat, 1.0, 0.0)
    rows = (rows + offset) * (scale or draw.scale())
    return Case(probe, cast(rows, probe.precision), loaded)


@check("layer_norm.formula", examples=15)
def test_formula(subject: Subject, draw: Draw) -> None:
    scale = draw.choose((0.0, 1e-6))  # 0 draws one; rows below the root of the epsilon show a floor
    drawn(subject, draw, scale=scale, widths=draw.choose(((2, 12), (60, 130)))).right()


def _choice(subject: Subject, draw: Draw, choice: str, scale: float, *values: Value) -> None:
    """Demand what is declared for `choice` at a scale that tells it from the other `values`."""
    if subject.precision in HALVES:
        raise Absent(f"{subject.precision} is too coarse to tell the options of {choice} apart")
    case = drawn(subject, draw, scale=scale, widths=(3, 5))
    shows(case.probe, case.x, actual=case.output(), choice=choice, others=values)


@check("layer_norm.epsilon-place")
def test_epsilon_place(subject: Subject, draw: Draw) -> None:
    epsilon = subject.choices.norm_epsilon
    if epsilon == 0:
        raise Absent("an epsilon of 0 has no place")
    places = ("inside-root", "added-to-deviation")
    _choice(subject, draw, "norm_epsilon_place", epsilon**0.5, *places)


@check("layer_norm.variance")
def test_variance(subject: Subject, draw: Draw) -> None:
    size = max(1.0, subject.choices.norm_epsilon)
    _choice(subject, draw, "norm_variance", size, "biased", "unbiased")


@check("layer_norm.epsilon")
def test_epsilon(subject: Subject, draw: Draw) -> None:
    epsilon = subject.choices.norm_epsilon
    inside = subject.choices.norm_epsilon_place == "inside-root"
    scale = (epsilon**0.5 if inside else epsilon) or 1e-7
    _choice(subject, draw, "norm_epsilon", scale, 2 * epsilon, epsilon / 2, *_OTHER_EPSILONS)


@check("layer_norm.gain-and-bias")
def test_gain_and_bias(subject: Subject, draw: Draw) -> None:
    # As many positions as columns: a gain along the wrong axis fits.
    width = draw.length(2, 5)
    case = drawn(subject, draw, widths=(width, width), shape=(draw.batch(), width))
    if not case.loaded:
        raise Absent(f"{subject.name} gives no access to gain and bias")
    after = case.right()
    given = dict(case.probe.parameters)
    case.probe.load(newborn(width))
    expected = given["gain"] * as_floats(case.output()) + given["bias"]
    case.probe.load(given)
    alike(case.probe, case.x, actual=after, expected=expected, what="output with a gain and a bias")


@check("layer_norm.shapes")
def test_shapes(subject: Subject, draw: Draw) -> None:
    ones = draw.choose(((1, 1), (1, 0), (0, 1), (0, 0)))
    shape = (ones[0] or draw.batch(), ones[1] or draw.length())
    case = drawn(subject, draw, scale=1.0, shape=shape)
    same_precision(case.probe, case.right())


@check("layer_norm.per-position")
def test_per_position(subject: Subject, draw: Draw) -> None:
    batch, length = draw.choose((2, 3)), draw.choose((draw.length(), draw.long()))
    case = drawn(subject, draw, shape=(batch, length))
    together = case.right()
    sample, place = draw.integer(0, batch - 1), draw.integer(0, length - 1)
    alone = np.zeros((batch, length), dtype=bool)
    alone[sample, place] = True
    others = draw.floats(*case.x.shape, scale=30.0 * largest(case.x))
    changed = np.where(alone[..., None], case.x, others)
    after = case.probe.output(changed)
    alike(
        case.probe,
        case.x,
        actual=after,
        expected=together,
        rows=alone,
        what="output at a position after changing all others",
    )


@check("layer_norm.shift-law")
def test_shift_law(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, scale=1.0, widths=(4, 12))
    size = 4.0 if subject.precision in HALVES else draw.choose((100.0, 1.0, 1000.0))
    shift = draw.choose((1.0, -1.0)) * size
    # Digits that the shift pushes out of the format are missing on both sides.
    moved = cast(case.x + shift, subject.precision)
    alike(
        case.probe,
        moved,
        actual=case.probe.output(moved),
        expected=Case(case.probe, moved - shift, case.loaded).right(),
        what=f"output after adding {shift:g} to every column",
    )


@check("layer_norm.scale-law")
def test_scale_law(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, scale=draw.choose((1.0, 30.0)))
    before = as_floats(case.right())
    factor = draw.choose((64.0, 0.125, -1.0, -64.0, -0.125))
    bias = case.probe.parameters["bias"]
    sizes = [
        np.linalg.norm(case.probe.expected(x) - bias, axis=-1, keepdims=True)
        for x in (case.x, case.x * factor)
    ]
    expected = bias + np.sign(factor) * (before - bias) * sizes[1] / sizes[0]
    alike(
        case.probe,
        case.x,
        actual=case.probe.output(case.x * factor),
        expected=expected,
        what=f"output after multiplying every column by {factor:g}",
    )


def constant(subject: Subject, draw: Draw, *, level: float, precision: str = "") -> Case:
    """Draw a call with two positions, the first of them constant."""
    if subject.choices.norm_epsilon == 0:
        raise Absent("without an epsilon a constant row has no value")
    case = drawn(subject, draw, scale=1.0, shape=(draw.batch(), 2), precision=precision)
    case.x[:, 0] = level
    return case


@check("layer_norm.constant-row-finite")
def test_constant_row_finite(subject: Subject, draw: Draw) -> None:
    case = constant(subject, draw, level=draw.choose(_LEVELS))
    actual = case.output()
    finite(actual)
    _gives_the_bias(case, actual)
    holds(bool(as_floats(actual)[:, 1].any()), "Rows that are not constant came out as 0.")


def _gives_the_bias(case: Case, actual: Array) -> None:
    """Demand the bias at constant rows, but for what is left of a mean that is not exact."""
    first = np.zeros(actual.shape[:-1], dtype=bool)
    first[:, 0] = True
    matches(case.probe, case.x, actual=actual, rows=first, what="output at a constant row")


@check("layer_norm.constant-row-gradient")
def test_constant_row_gradient(subject: Subject, draw: Draw) -> None:
    _fits_the_format(subject)
    case = constant(subject, draw, level=draw.choose(_LEVELS))
    gradient = case.probe.vjp((case.x,), draw.floats(*case.x.shape))
    found = gradient_to(gradient, 0, "input", case.x.shape)
    holds(found.any(), "No gradient reaches the input.")


def _fits_the_format(subject: Subject) -> None:
    """End as absent where the slope at a constant row, one over the divisor, is out of range."""
    choices = subject.choices
    inside = choices.norm_epsilon_place == "inside-root"
    divisor = choices.norm_epsilon**0.5 if inside else choices.norm_epsilon
    if divisor * largest_of(subject.precision) < 100.0:
        raise Absent(f"{subject.precision} cannot hold a slope of 1 / {divisor:.3g}")


@check("layer_norm.constant-row-half-precision")
def test_constant_row_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in halves(subject):
        case = constant(subject, draw, level=0.0, precision=precision)
        actual = case.output()
        finite(actual, what=f"output in {precision}")
        _gives_the_bias(case, actual)


@check("layer_norm.birth", examples=6)
def test_birth(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, scale=1.0)
    fresh = subject.part("layer_norm", case.probe.sizes)
    fresh.parameters = newborn(case.probe.sizes.d_model)
    Case(fresh, case.x, False).right()


@check("layer_norm.large-offset")
def test_large_offset(subject: Subject, draw: Draw) -> None:
    if subject.precision in HALVES:
        raise Absent(f"{subject.precision} cannot hold a deviation a thousandth of the mean")
    drawn(subject, draw, offset=draw.choose((1e3, -1e3)), widths=(4, 12)).right()


@check("layer_norm.float32")
def test_float32(subject: Subject, draw: Draw) -> None:
    precise(lambda precision: _call(subject, draw, precision), "float32")


@check("layer_norm.half-precision")
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in halves(subject):
        precise(lambda one: _call(subject, draw, one, largest_row=300.0), precision)


def _call(subject: Subject, draw: Draw, precision: str, largest_row: float = 30.0) -> Call:
    """Draw a call in a precision; the first sample's squares are beyond the range of float16."""
    case = drawn(subject, draw, scale=1.0, widths=(3, 12), precision=precision)
    case.x[0] = cast(case.x[0] * largest_row, precision)
    return case.probe, (case.x,)


@check("layer_norm.gradient", examples=6)
def test_gradient(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, scale=1.0, widths=(3, 8))
    if not case.loaded:
        raise Absent(f"{subject.name} gives no access to gain and bias")
    agrees_with_differences(case.probe, case.x, draw=draw)


@check("layer_norm.parameters-trained", examples=4)
def test_parameters_trained(subject: Subject, draw: Draw) -> None:
    width = draw.integer(2, 12)
    probe = subject.part("layer_norm", Sizes(d_model=width, heads=1))
    held = probe.do("listing what it holds", lambda part: part.inventory())["parameters"]
    found = {
        name: tuple(facts["shape"]) for name, facts in held.items() if facts.get("trained", True)
    }
    holds(
        sorted(found.values()) == [(width,), (width,)],
        f"Trained are {found or 'no parameters'}; a gain and a bias of shape {(width,)} should be.",
    )


@check("layer_norm.input-untouched", examples=4)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw)
    case.right()  # every call compares its inputs before and after
    if "mode" in case.probe.part.capabilities:
        case.probe.train()
        case.right()
