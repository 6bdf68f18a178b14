"""Assertions about arrays, with bounds that come from the arithmetic.

The bound of a comparison is the error that sound code can make: the unit roundoff of the precision
times the root of the number of roundings that add up (they have random signs), times the size of
what is rounded. Where inputs are
amplified on the way (a steep softmax, a norm of nearly equal numbers), the amplification is
measured on the oracle: it is evaluated again with every input and parameter changed in its last
digits, and what that changes is what rounding may change.
"""

from typing import Any

import numpy as np

from attentest.harness.errors import Violation
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import (
    Pick,
    _answer,
    _selected,
    as_floats,
    distance,
    error_bound,
    largest,
    rounding,
)
from attentest_spec import Choices
from attentest_spec.contract import Input
from attentest_spec.setting import Array, Floats


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
    pick: Pick | None = None,
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
