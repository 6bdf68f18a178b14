"""Assertions about arrays, with tolerances that come from the arithmetic.

The tolerance of a comparison is the error that correct code can make: the unit roundoff of the
precision times the root of the number of roundings that add up (they have random signs), times the
magnitude of what is rounded. Where inputs are amplified on the way (a steep softmax, a norm of
nearly equal numbers), the amplification is measured on the reference: it is evaluated again with
every input and parameter changed in its last digits, and what that changes is what rounding may
change.

Messages begin with "The `what`", a noun phrase such as "weights" or "output of the second call".
"""

from typing import Annotated, Any

import numpy as np

from attentest.harness.errors import Violation
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import (
    Pick,
    _expected,
    _select,
    as_floats,
    distance,
    error_bound,
    largest,
    rounding,
)
from attentest_spec import Choices
from attentest_spec.contract import Input
from attentest_spec.precision import least
from attentest_spec.setting import Array, Floats


def same_shape(
    actual: Annotated[Array, "*found"], shape: tuple[int, ...], *, what: str = "output"
) -> None:
    """Demand that `actual`, an array of any shape, has `shape`."""
    if actual.shape != shape:
        raise Violation(f"The {what} {_verb(what, 'has')} the shape {actual.shape}, not {shape}.")


def holds(
    truth: bool | np.bool_, message: str, *, actual: Any = None, expected: Any = None
) -> None:
    """Demand `truth`; `message` states in one sentence, with numbers, what was found instead."""
    if not truth:
        raise Violation(message, actual=actual, expected=expected)


def finite(actual: Annotated[Array, "*shape"], *, what: str = "output") -> None:
    """Demand that every number of `actual`, of any shape, is finite."""
    wrong = int(np.size(actual) - np.isfinite(as_floats(actual)).sum())
    text = f"{wrong} of {np.size(actual)} numbers that are not finite"
    holds(wrong == 0, f"The {what} {_verb(what, 'has')} {text}.", actual=actual)


def equal(
    actual: Annotated[Array, "*found"],
    expected: Annotated[Array, "*shape"],
    *,
    what: str = "output",
) -> None:
    """Demand the same shape, which may be any, and exactly the same numbers."""
    same_shape(actual, np.shape(expected), what=what)
    if not np.array_equal(as_floats(actual), as_floats(expected), equal_nan=True):
        raise Violation(_mismatch(actual, expected, what), actual=actual, expected=expected)


def near(
    subject: Subject,
    actual: Annotated[Array, "*found"],
    expected: Annotated[Array, "*shape"],
    *,
    what: str = "output",
    terms: int = 1,
    size: float | None = None,
    precision: str = "",
    rows: Annotated[Array, "*rows"] | None = None,
) -> None:
    """Demand the same shape, which may be any, and equality up to rounding.

    `terms` counts the roundings that add up, `size` is the magnitude of what is rounded (that of
    `expected` by default), `rows` selects the
    positions that are judged on the first axes (all by default).
    """
    same_shape(actual, np.shape(expected), what=what)
    found, wanted = _select(actual, expected, rows)
    # Two answers of one backend may both be NaN, and agree in nothing.
    text = f"The {what} {_verb(what, 'contains')} NaN."
    holds(not np.isnan(found).any(), text, actual=actual, expected=expected)
    magnitude = largest(wanted) if size is None else size
    used = precision or subject.precision
    tolerance = rounding(used, terms) * magnitude + least(used)
    _within(subject, found, wanted, tolerance, what)


def matches(
    probe: Probe,
    *inputs: Input,
    actual: Annotated[Array, "*found"],
    method: str = "",
    pick: Pick | None = None,
    what: str = "output",
    rows: Annotated[Array, "*rows"] | None = None,
    choices: Choices | None = None,
) -> None:
    """Demand that `actual` is what the reference computes from the same inputs, up to rounding.

    `pick` takes the array to compare out of the answer of the reference (the output by default). It
    may have any shape; `rows` selects positions on its first axes.
    """
    expected = _expected(probe, inputs, method, pick, choices)
    same_shape(actual, expected.shape, what=what)
    found, wanted = _select(actual, expected, rows)
    tolerance = error_bound(
        probe,
        inputs,
        expected,
        method=method,
        pick=pick,
        choices=choices,
        difference=distance(found, wanted),
    )
    _within(probe.subject, found, wanted, tolerance, what)


def _within(subject: Subject, found: Floats, wanted: Floats, tolerance: float, what: str) -> None:
    difference = distance(found, wanted)
    if not difference <= tolerance:  # so that a tolerance of NaN accepts nothing
        text = f"{_mismatch(found, wanted, what)}; the tolerance is {tolerance:.2g}."
        raise Violation(text, actual=found, expected=wanted)
    if tolerance > 0:
        subject.used(difference / tolerance)


def _mismatch(actual: Array, expected: Array, what: str) -> str:
    """Return a message about the largest difference: its size, its place and the two numbers."""
    found, wanted = as_floats(actual), as_floats(expected)
    with np.errstate(invalid="ignore"):
        difference = np.where(found == wanted, 0.0, np.abs(found - wanted))
    nans = np.isnan(difference) & ~(np.isnan(found) & np.isnan(wanted))
    difference = np.where(nans, np.inf, difference)
    place = np.unravel_index(int(np.nanargmax(difference)), difference.shape)
    where = f" at {tuple(int(index) for index in place)}" if place else ""
    return (
        f"The {what} {_verb(what, 'differs')} by {float(difference[place]):.3g}{where}: "
        f"found {float(found[place]):.9g}, expected {float(wanted[place]):.9g}"
    )


def _verb(what: str, singular: str) -> str:
    """Return the verb in the number of the noun that `what` is about."""
    if subject_noun(what) not in PLURALS:
        return singular
    return "have" if singular == "has" else singular.removesuffix("s")


def subject_noun(what: str) -> str:
    """Return the noun that `what` begins with: "tokens" of "given tokens in the result"."""
    return next(word for word in what.split() if word not in _ADJECTIVES).strip(",")


_ADJECTIVES = ("decoded", "given", "new", "padded")

PLURALS = frozenset(
    {
        *("weights", "gradients", "sines", "cosines", "parameters", "probabilities"),
        *("tokens", "scores", "hypotheses", "moves", "sums", "places"),
    }
)
"""The plural nouns that messages are about."""
