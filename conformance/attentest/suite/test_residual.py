"""Checks of the chapter `residual`; the sublayer is a square matrix W for x -> x W."""

import numpy as np

from attentest.cases import quiet_in_evaluation
from attentest.checks import check
from attentest.compare import as_floats, equal, error_bound, holds, matches
from attentest.draw import Draw
from attentest.gradients import agrees_with_differences, every_parameter_reached
from attentest.laws import alike
from attentest.outcome import Absent
from attentest.subject import Probe, Subject, cast
from attentest_spec import Sizes
from attentest_spec.setting import Array, Floats

COMPONENT = "residual"
_RATE = 0.99

Case = tuple[Probe, Floats, Floats]
"""The part, x (B, S, D) and the sublayer W (D, D)."""


def inputs(draw: Draw, width: int, batch: int, length: int) -> tuple[Floats, Floats]:
    """Draw x with columns that lie apart in every row, and a sublayer."""
    x = np.round(draw.rng.normal(size=(batch, length, width)), 2) + 0.75 * np.arange(width)
    matrix = draw.floats(width, width, scale=0.5)
    return cast(x, draw.subject.precision), matrix


def drawn(subject: Subject, draw: Draw, *, batch: int = 0, dropout: float = 0.0) -> Case:
    """Draw a call."""
    width = draw.integer(3, 5)
    sizes = Sizes(d_model=width, heads=1, dropout=dropout)
    probe = subject.part(COMPONENT, sizes, parameters=draw.parameters(COMPONENT, sizes))
    return probe, *inputs(draw, width, batch or draw.batch(), draw.length())


def right(probe: Probe, x: Floats, matrix: Floats) -> Array:
    """Return the output, demanded to be the oracle's."""
    actual = probe.output(x, matrix)
    matches(probe, x, matrix, actual=actual)
    return actual


@check("residual.formula", examples=15)
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
    alike(
        probe,
        x,
        matrix,
        actual=probe.output(changed, matrix),
        expected=together,
        rows=alone,
        what="output at a position after changing all others",
    )


@check("residual.input-untouched", examples=4)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    right(*drawn(subject, draw))  # every call compares its inputs before and after


@check("residual.gradient-through-identity", examples=5)
def test_gradient_through_identity(subject: Subject, draw: Draw) -> None:
    probe, x, matrix = drawn(subject, draw)
    agrees_with_differences(probe, x, matrix, draw=draw)


@check("residual.every-parameter-reached", examples=5)
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    probe, x, matrix = drawn(subject, draw)
    every_parameter_reached(probe, x, matrix, draw=draw)


def trained(subject: Subject, draw: Draw) -> tuple[Probe, Floats, Floats, Floats]:
    """Draw a call with eight samples and a rate near 1, and return its output in training mode."""
    if not subject.limits.dropout:
        raise Absent(f"{subject.name} has no dropout")
    probe, x, matrix = drawn(subject, draw, batch=8, dropout=_RATE)
    right(probe, x, matrix)
    probe.train()
    return probe, x, matrix, as_floats(probe.output(x, matrix))


def _close(probe: Probe, x: Floats, matrix: Floats, output: Floats) -> Array:
    """Say for every number of `output` whether it is the oracle's for this sublayer."""
    expected = as_floats(probe.expected(x, matrix))
    close: Array = np.abs(output - expected) <= error_bound(probe, (x, matrix), expected)
    return close


@check("residual.dropout-on-branch-alone", examples=4)
def test_dropout_on_branch_alone(subject: Subject, draw: Draw) -> None:
    probe, x, matrix, output = trained(subject, draw)
    dropped, kept, grown = (
        _close(probe, x, matrix * size, output) for size in (0.0, 1.0, 1.0 / (1.0 - _RATE))
    )
    if subject.choices.norm_placement == "pre":
        sound = float((dropped | kept | grown).mean())
        holds(sound == 1.0, f"Only {sound:.0%} of the numbers are x, or x and the branch.")
        return
    rows = float((dropped.all(axis=-1) | kept.all(axis=-1)).mean())
    holds(rows >= 0.5, f"Only {rows:.0%} of the rows are norm(x), or norm(x + f(x)).")


@check("residual.branch-is-dropped", examples=4)
def test_branch_is_dropped(subject: Subject, draw: Draw) -> None:
    probe, x, matrix, output = trained(subject, draw)
    dropped = _close(probe, x, np.zeros_like(matrix), output)
    share = float(dropped.all(axis=-1).mean())
    holds(share >= 0.5, f"At a rate of {_RATE} the branch is gone from {share:.0%} of the rows.")


@check("residual.dropout-only-in-training", examples=4)
def test_dropout_only_in_training(subject: Subject, draw: Draw) -> None:
    width = draw.integer(3, 5)
    sizes = Sizes(d_model=width, heads=1)
    given = inputs(draw, width, 2, draw.length())
    quiet_in_evaluation(subject, draw, COMPONENT, sizes, *given)
