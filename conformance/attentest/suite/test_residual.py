"""Checks of the chapter `residual`; the sublayer is a square matrix W for x -> x W."""

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, error_bound
from attentest.judging.check import check
from attentest.testing.assertions import equal, holds, matches
from attentest.testing.common import dropout_off_in_evaluation
from attentest.testing.draw import Draw
from attentest.testing.gradients import agrees_with_differences, every_parameter_reached
from attentest.testing.invariants import agree_up_to_rounding
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, SizesInUse, at_sizes_in_use
from attentest_spec import Sizes
from attentest_spec.setting import Array, Floats

COMPONENT = "residual"
_RATE = 0.75
"""Kept numbers are scaled by 4: no other rate, and no number of times, gives the same."""

_SAMPLES = 24
"""Rows enough for some to keep one number and drop another: all or none happens in 0.43 of them."""

_AMBIGUOUS = 0.1
"""The share of rows that may equal several sets of columns: a branch has zeros of its own."""

Case = tuple[Probe, Floats, Floats]
"""The part, x (B, S, D) and the sublayer W (D, D)."""


def inputs(draw: Draw, width: int, batch: int, length: int) -> tuple[Floats, Floats]:
    """Draw x with columns that differ in every row, and a sublayer."""
    x = np.round(draw.rng.normal(size=(batch, length, width)), 2) + 0.75 * np.arange(width)
    matrix = draw.floats(width, width, scale=0.5)
    return cast(x, draw.subject.precision), matrix


def draw_sizes(draw: Draw) -> Sizes:
    """Draw a width."""
    return draw.subject.limits.fitted(Sizes(d_model=draw.integer(3, 5), heads=1))


def drawn(subject: Subject, draw: Draw, *, batch: int = 0, dropout: float = 0.0) -> Case:
    """Draw a call."""
    sizes = draw_sizes(draw).but(dropout=dropout)
    probe = subject.part(COMPONENT, sizes, parameters=draw.parameters(COMPONENT, sizes))
    return probe, *inputs(draw, sizes.d_model, batch or draw.batch(), draw.length())


def right(probe: Probe, x: Floats, matrix: Floats) -> Array:
    """Return the output, demanded to be the oracle's."""
    actual = probe.output(x, matrix)
    matches(probe, x, matrix, actual=actual)
    return actual


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    sizes = size.sizes(subject)
    probe = subject.part(COMPONENT, sizes, parameters=draw.parameters(COMPONENT, sizes))
    right(probe, *inputs(draw, size.width, size.batch, size.length))


@check("residual.formula", in_use=at_sizes_in_use(_formula_in_use, WIDE, MANY, LONG))
def test_formula(subject: Subject, draw: Draw) -> None:
    right(*drawn(subject, draw))


@check("residual.identity-path")
def test_identity_path(subject: Subject, draw: Draw) -> None:
    probe, x, matrix = drawn(subject, draw)
    actual = right(probe, x, np.zeros_like(matrix))
    if subject.choices.norm_placement == "pre":
        equal(actual, x, what="output for a sublayer that returns zeros")


@check("residual.per-position")
def test_per_position(subject: Subject, draw: Draw) -> None:
    probe, x, matrix = drawn(subject, draw, batch=draw.choose((2, 3)))
    together = right(probe, x, matrix)
    alone = np.zeros(x.shape[:-1], dtype=bool)
    alone[draw.integer(0, x.shape[0] - 1), draw.integer(0, x.shape[1] - 1)] = True
    changed = np.where(alone[..., None], x, draw.floats(*x.shape, scale=30.0))
    agree_up_to_rounding(
        probe,
        x,
        matrix,
        actual=probe.output(changed, matrix),
        expected=together,
        rows=alone,
        what="output at a position after changing all others",
    )


@check("residual.input-untouched")
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    right(*drawn(subject, draw))  # every call compares its inputs before and after


@check("residual.gradient-through-identity")
def test_gradient_through_identity(subject: Subject, draw: Draw) -> None:
    probe, x, matrix = drawn(subject, draw)
    agrees_with_differences(probe, x, matrix, draw=draw)


@check("residual.every-parameter-reached")
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    probe, x, matrix = drawn(subject, draw)
    every_parameter_reached(probe, x, matrix, draw=draw)


def trained(subject: Subject, draw: Draw) -> tuple[Array, Array]:
    """Draw a call in training mode; say which rows kept the whole branch, and which sets of it.

    The first is (B, S): no dropout was seen. The second is (sets, B, S), the sets of columns as
    :func:`_sets` lists them: the columns in the set were kept and scaled, the others dropped.
    """
    if not subject.limits.dropout:
        raise Absent(f"{subject.name} has no dropout")
    probe, x, matrix = drawn(subject, draw, batch=_SAMPLES, dropout=_RATE)
    right(probe, x, matrix)
    probe.train()
    output = as_floats(probe.output(x, matrix))
    scaled = matrix / (1.0 - _RATE)
    bound = error_bound(probe, (x, scaled), as_floats(probe.expected(x, scaled).output))
    whole, *kept = (
        np.abs(output - as_floats(probe.expected(x, one).output)).max(axis=-1) <= bound
        for one in (matrix, *(scaled * columns for columns in _sets(x.shape[-1])))
    )
    sets = np.stack(kept)
    if (sets.sum(axis=0) > 1).mean() > _AMBIGUOUS:
        raise Absent(f"{subject.precision} does not distinguish the columns that were dropped")
    return whole, sets


def _sets(width: int) -> Array:
    """Return every set of columns as a row of truths, none of them first and all of them last."""
    sets: Array = (np.arange(2**width)[:, None] >> np.arange(width)) % 2 == 1
    return sets


@check("residual.dropout-on-branch-alone")
def test_dropout_on_branch_alone(subject: Subject, draw: Draw) -> None:
    whole, kept = trained(subject, draw)
    share = float(kept.any(axis=0).mean())
    holds(
        share == 1.0 or bool(whole.all()),
        f"At a rate of {_RATE}, {share:.0%} of the rows are what x and some columns of the branch "
        f"give, scaled by {1 / (1 - _RATE):g}.",
    )


@check("residual.branch-is-dropped")
def test_branch_is_dropped(subject: Subject, draw: Draw) -> None:
    _, kept = trained(subject, draw)
    some = kept[1:-1].any(axis=0) & ~kept[0] & ~kept[-1]
    share = float((kept[:-1].any(axis=0) & ~kept[-1]).mean())
    holds(share >= 0.5, f"At a rate of {_RATE} a part of the branch is gone from {share:.0%} rows.")
    holds(bool(some.any()), f"Of {some.size} rows, each is dropped as a whole or not at all.")


@check("residual.dropout-only-in-training")
def test_dropout_only_in_training(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    given = inputs(draw, sizes.d_model, 2, draw.length())
    dropout_off_in_evaluation(subject, draw, COMPONENT, sizes, *given)
