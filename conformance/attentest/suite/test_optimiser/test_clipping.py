"""Checks of the clipping of gradients; a limit is an array without axes."""

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.testing.assertions import equal, finite, holds, near, same_shape
from attentest.testing.draw import Draw
from attentest.testing.sizes_in_use import WIDE, SizesInUse, at_sizes_in_use
from attentest_spec import Sizes
from attentest_spec.precision import epsilon
from attentest_spec.setting import Array, Floats

COMPONENT = "gradient_clipping"
Case = tuple[Floats, Array]
"""Gradients (N,) and the numbers of gradients of each array (G,)."""


def draw_case(draw: Draw, *, scale: float = 1.0) -> Case:
    """Draw the gradients of several arrays of different size and magnitude."""
    groups = np.array([draw.integer(1, 4), draw.integer(2, 5), draw.integer(1, 3)])
    sizes = np.repeat([1.0, 4.0, 0.5], groups)
    values = draw.floats(int(groups.sum()))
    return scale * sizes * (values + np.where(values < 0, -0.25, 0.25)), groups


def build(subject: Subject) -> Probe:
    """Build the clipping."""
    return subject.part(COMPONENT, Sizes())


def norm(gradients: Floats) -> float:
    """Return the norm of all gradients."""
    return float(np.sqrt((gradients**2).sum()))


def clipped(probe: Probe, case: Case, limit: float) -> Floats:
    """Return the gradients after clipping, all of them finite."""
    gradients, groups = case
    output = probe.output(gradients, groups, np.array(limit))
    same_shape(output, gradients.shape, what="gradients")
    finite(output, what="output")
    return as_floats(output)


def formula(probe: Probe, case: Case, limit: float) -> Floats:
    """Demand the gradients of the reference, and return them."""
    gradients, groups = case
    actual = clipped(probe, case, limit)
    expected = as_floats(probe.expected(gradients, groups, np.array(limit)).output)
    near(probe.subject, actual, expected, what="gradients", terms=16 + 4 * len(gradients))
    return actual


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    groups = np.array([size.width, 1, 4 * size.width])
    gradients = draw.floats(int(groups.sum()))
    formula(build(subject), (gradients, groups), 1.0)


@check("optimiser.clipping-formula", in_use=at_sizes_in_use(_formula_in_use, WIDE))
def test_clipping_formula(subject: Subject, draw: Draw) -> None:
    # In float16 the squares of larger gradients are infinite.
    large = 3.0 if subject.precision == "float16" else 30.0
    case = draw_case(draw, scale=draw.choose((1.0, large, 0.1)))
    found = formula(build(subject), case, draw.choose((0.5, 0.9, 0.01)) * norm(case[0]))
    holds(bool(found.any()), "All gradients become 0.", actual=found)


@check("optimiser.clipping-global")
def test_clipping_global(subject: Subject, draw: Draw) -> None:
    gradients, groups = draw_case(draw)
    probe, limit = build(subject), 0.5 * norm(gradients)
    found = formula(probe, (gradients, groups), limit)
    whole = np.array([len(gradients)])
    each = np.ones(len(gradients), dtype=np.int64)
    terms = 16 + 4 * len(gradients)
    for other, words in ((whole, "one array"), (each, "arrays of one"), (groups[::-1], "others")):
        again = clipped(probe, (gradients, other), limit)
        near(subject, again, found, what=f"gradients in {words}", terms=terms)


@check("optimiser.clipping-below-the-limit")
def test_clipping_below_the_limit(subject: Subject, draw: Draw) -> None:
    case = draw_case(draw, scale=draw.choose((1.0, 1e-3)))
    probe, length = build(subject), norm(case[0])
    for limit in (1.001 * length, 2.0 * length, 1e3 * length):
        if subject.precision in ("float64", "float32") or limit > 1.5 * length:
            text = f"gradients of the norm {length:.4g}, below the limit of {limit:.4g},"
            found = clipped(probe, case, limit)
            near(subject, found, _rounded(subject, case[0]), what=text, terms=4)
    holds(norm(clipped(probe, case, 0.5 * length)) < length, "Gradients are never clipped.")


def _rounded(subject: Subject, gradients: Floats) -> Floats:
    return as_floats(cast(gradients, subject.precision))


@check("optimiser.clipping-direction")
def test_clipping_direction(subject: Subject, draw: Draw) -> None:
    case = draw_case(draw)
    probe, length = build(subject), norm(case[0])
    found = clipped(probe, case, draw.choose((0.5, 0.1)) * length)
    shares = found / case[0]
    what = "share of a gradient that is left"
    near(subject, shares, np.full_like(shares, shares[0]), what=what, terms=32)
    holds(0 < shares[0] < 1, f"Gradients above the limit are multiplied by {shares[0]:.4g}.")


@check("optimiser.clip-epsilon")
def test_clip_epsilon(subject: Subject, draw: Draw) -> None:
    case = draw_case(draw, scale=draw.choose((1e-2, 1.0)))
    limit = 0.3 * norm(case[0])
    found = formula(build(subject), case, limit)
    longest = norm(found)
    text = f"Clipped to {limit:.6g} the gradients have the norm {longest:.6g}."
    holds(longest <= limit * (1 + 64 * epsilon(subject.precision)), text, actual=found)


@check("optimiser.clipping-zeros", examples=2)
def test_clipping_zeros(subject: Subject, draw: Draw) -> None:
    gradients, groups = draw_case(draw)
    probe = build(subject)
    nothing = np.zeros_like(gradients)
    equal(clipped(probe, (nothing, groups), 0.5), nothing, what="gradients of 0")
    partly = gradients.copy()
    partly[: groups[0]] = 0.0
    found = formula(probe, (partly, groups), 0.5 * norm(partly))
    equal(found[: groups[0]], nothing[: groups[0]], what="gradients of 0 in one array")
