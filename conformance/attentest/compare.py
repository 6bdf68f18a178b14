"""Assertions about arrays, with bounds that come from the arithmetic.

The bound of a comparison is the error that sound code can make: the unit roundoff of the precision
times the root of the number of roundings that add up (they have random signs), times the size of
what is rounded. Where inputs are
amplified on the way (a steep softmax, a norm of nearly equal numbers), the amplification is
measured on the oracle: it is evaluated again with every input and parameter changed in its last
digits, and what that changes is what rounding may change.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from attentest.bounds import NUDGE, arithmetic, nearby, terms
from attentest.outcome import Violation
from attentest.subject import Probe, Subject
from attentest_spec import Choices
from attentest_spec.contract import Input
from attentest_spec.precision import epsilon
from attentest_spec.setting import Array, Floats

_SAFETY = 8.0
"""Constant in front of every bound: few roundings per term, and a sampled amplification."""


def as_floats(values: Any) -> Floats:
    """Return `values` as float64, whatever they came in."""
    return np.asarray(values).astype(np.float64)


def same_shape(actual: Array, shape: tuple[int, ...], *, what: str = "output") -> None:
    """Demand that `actual` has `shape`."""
    if actual.shape != shape:
        raise Violation(f"The {what} has the shape {actual.shape}, not {shape}.")


def holds(truth: bool | np.bool_, found: str, *, actual: Any = None, expected: Any = None) -> None:
    """Demand `truth`; `found` says in one sentence, with numbers, what is the case if it fails."""
    if not truth:
        raise Violation(found, actual=actual, expected=expected)


def finite(actual: Array, *, what: str = "output") -> None:
    """Demand that every number is finite."""
    wrong = int(np.size(actual) - np.isfinite(as_floats(actual)).sum())
    holds(
        wrong == 0,
        f"The {what} has {wrong} of {np.size(actual)} numbers that are not finite.",
        actual=actual,
    )


def equal(actual: Array, expected: Array, *, what: str = "output") -> None:
    """Demand the same shape and exactly the same numbers."""
    same_shape(actual, np.shape(expected), what=what)
    if not np.array_equal(as_floats(actual), as_floats(expected), equal_nan=True):
        raise Violation(_worst(actual, expected, what), actual=actual, expected=expected)


def near(
    subject: Subject,
    actual: Array,
    expected: Array,
    *,
    what: str = "output",
    terms: int = 1,
    size: float | None = None,
    precision: str = "",
    rows: Array | None = None,
) -> None:
    """Demand equality up to rounding.

    `terms` counts the roundings that add up, `size` is the magnitude of what is rounded (that of
    `expected` by default), `rows` selects the positions that are judged (all by default).
    """
    same_shape(actual, np.shape(expected), what=what)
    found, wanted = _selected(actual, expected, rows)
    # Two answers of one backend may both be NaN, and agree in nothing.
    holds(not np.isnan(found).any(), f"The {what} holds NaN.", actual=actual, expected=expected)
    magnitude = largest(wanted) if size is None else size
    bound = rounding(precision or subject.precision, terms) * magnitude
    _within(subject, found, wanted, bound, what)


def matches(
    probe: Probe,
    *inputs: Input,
    actual: Array,
    method: str = "",
    pick: Callable[[Any], Array] | None = None,
    what: str = "output",
    rows: Array | None = None,
    choices: Choices | None = None,
) -> None:
    """Demand that `actual` is what the oracle computes from the same inputs, up to rounding.

    `pick` takes the judged array out of the oracle's answer (the output by default).
    """
    expected = _answer(probe, inputs, method, pick, choices)
    same_shape(actual, expected.shape, what=what)
    found, wanted = _selected(actual, expected, rows)
    bound = error_bound(
        probe,
        inputs,
        expected,
        method=method,
        pick=pick,
        choices=choices,
        difference=distance(found, wanted),
    )
    _within(probe.subject, found, wanted, bound, what)


def error_bound(
    probe: Probe,
    inputs: tuple[Input, ...],
    expected: Floats,
    *,
    method: str = "",
    pick: Callable[[Any], Array] | None = None,
    choices: Choices | None = None,
    difference: float = np.inf,
) -> float:
    """Return the error that sound code may make here.

    Amplification is measured only when `difference` exceeds half of the bound without it: it
    costs several more evaluations of the oracle.
    """
    unit = rounding(probe.precision, terms(probe, inputs))
    plain = unit * largest(expected)
    if 2 * difference <= plain:
        return plain  # and the share of the bound that is told is at most one half
    amplified = unit * _amplification(probe, inputs, expected, method, pick, choices)
    return plain + amplified + _of_a_single_softmax(probe, inputs, method, pick, choices)


def fits(
    probe: Probe,
    *inputs: Input,
    actual: Array,
    choices: Choices,
    method: str = "",
    rows: Array | None = None,
) -> bool:
    """Say whether `actual` is what the oracle computes under `choices`, up to rounding."""
    expected = _answer(probe, inputs, method, None, choices)
    if actual.shape != expected.shape:
        return False
    found, wanted = _selected(actual, expected, rows)
    difference = distance(found, wanted)
    return difference <= error_bound(
        probe, inputs, expected, method=method, choices=choices, difference=difference
    )


def distance(actual: Array, expected: Array) -> float:
    """Return the largest difference; infinite where one of the two is not a number."""
    found, wanted = as_floats(actual), as_floats(expected)
    if found.size == 0:
        return 0.0
    with np.errstate(invalid="ignore"):
        apart = np.abs(found - wanted)
    apart = np.where((found == wanted) | (np.isnan(found) & np.isnan(wanted)), 0.0, apart)
    return float(np.where(np.isnan(apart), np.inf, apart).max())


def largest(values: Array) -> float:
    """Return the largest finite magnitude in `values`, 0 for none."""
    sizes = np.abs(as_floats(values))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def _answer(
    probe: Probe,
    inputs: tuple[Input, ...],
    method: str,
    pick: Callable[[Any], Array] | None,
    choices: Choices | None,
) -> Floats:
    result = probe.expected(*inputs, method=method, choices=choices)
    if pick is not None:
        return as_floats(pick(result))
    return as_floats(result[0] if isinstance(result, tuple) else result)


def rounding(precision: str, terms: int) -> float:
    """Return the relative error that `terms` roundings of `precision` add up to."""
    return _SAFETY * epsilon(precision) / 2 * float(np.sqrt(terms))


def _of_a_single_softmax(
    probe: Probe,
    inputs: tuple[Input, ...],
    method: str,
    pick: Callable[[Any], Array] | None,
    choices: Choices | None,
) -> float:
    """Return the error that the roundings of a softmax in float32 may make to a float64 output.

    What they do make to the oracle's is one sample of it: its distance from the oracle that rounds
    nothing there. Inputs and parameters that differ in their 24th digit give others.
    """
    chosen = choices or probe.subject.choices
    if arithmetic(probe, chosen) == probe.precision:
        return 0.0
    exact = chosen.but(softmax_arithmetic="as-computed")
    with np.errstate(invalid="ignore"):
        return _SAFETY * max(
            largest(  # of what is finite: a score beyond float32 is no room without an end
                _answer(near_by, moved, method, pick, chosen)
                - _answer(near_by, moved, method, pick, exact)
            )
            for near_by, moved in nearby(probe, inputs, seeds=range(8))
        )


def _amplification(
    probe: Probe,
    inputs: tuple[Input, ...],
    expected: Floats,
    method: str,
    pick: Callable[[Any], Array] | None,
    choices: Choices | None,
) -> float:
    worst = 0.0
    for near_by, moved in nearby(probe, inputs, seeds=(1, 2, 3, 4)):  # some may cancel by luck
        apart = np.abs(_answer(near_by, moved, method, pick, choices) - expected)
        worst = max(worst, float(apart[np.isfinite(apart)].max(initial=0.0)) / NUDGE)
    return worst


def _selected(actual: Array, expected: Array, rows: Array | None) -> tuple[Floats, Floats]:
    found, wanted = as_floats(actual), as_floats(expected)
    return (found, wanted) if rows is None else (found[rows], wanted[rows])


def _within(subject: Subject, found: Floats, wanted: Floats, bound: float, what: str) -> None:
    difference = distance(found, wanted)
    if not difference <= bound:  # so that a bound of NaN accepts nothing
        text = f"{_worst(found, wanted, what)}; the bound is {bound:.2g}."
        raise Violation(text, actual=found, expected=wanted)
    if bound > 0:
        subject.used(difference / bound)


def _worst(actual: Array, expected: Array, what: str) -> str:
    found, wanted = as_floats(actual), as_floats(expected)
    with np.errstate(invalid="ignore"):
        apart = np.where(found == wanted, 0.0, np.abs(found - wanted))
    apart = np.where(np.isnan(apart) & ~(np.isnan(found) & np.isnan(wanted)), np.inf, apart)
    place = np.unravel_index(int(np.nanargmax(apart)), apart.shape)
    where = tuple(int(index) for index in place)
    return (
        f"The {what} differs by {float(apart[place]):.3g} at {where}: "
        f"found {float(found[place]):.9g}, expected {float(wanted[place]):.9g}"
    )
