"""Checks of the chapter `rotary`: laws of a rotation that depends on the position."""

from typing import Annotated

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_rotary.cases import (
    Turn,
    draw_turn,
    moves_as_declared,
    of_one_vector,
    same_turns,
    supported_kinds,
    turned_columns,
)
from attentest.testing.assertions import finite, holds, near, same_shape
from attentest.testing.draw import Draw
from attentest.testing.gradients import gradient_to
from attentest_spec.contract import POSITION_KINDS
from attentest_spec.rotary import magnitude
from attentest_spec.setting import Floats


@check("rotary.first-position")
def test_first_position(subject: Subject, draw: Draw) -> None:
    case = draw_turn(subject, draw, kinds=("none",))
    wanted = case.x[:, :, :1].copy()
    wanted[..., turned_columns(case)] *= magnitude(case.probe.sizes, case.choices)
    output = case.output()
    moves_as_declared(case, output)
    first = Turn(case.probe, case.x[:, :, :1])
    same_turns(first, output[:, :, :1], wanted)


@check("rotary.norm-kept")
def test_norm_kept(subject: Subject, draw: Draw) -> None:
    case = draw_turn(subject, draw, lengths=(4, 12))
    output = case.output()
    moves_as_declared(case, output)
    given = case.x.copy()
    given[..., turned_columns(case)] *= magnitude(case.probe.sizes, case.choices)
    found, wanted = (np.linalg.norm(one, axis=-1, keepdims=True) for one in (output, given))
    # The error of a norm is that of all columns, at most the root of their number times one.
    same_turns(case, found, wanted, what="norm of turned x", times=case.x.shape[-1] ** 0.5)


@check("rotary.distance-alone")
def test_distance_alone(subject: Subject, draw: Draw) -> None:
    query = of_one_vector(draw_turn(subject, draw, lengths=(4, 12), kinds=("none",)))
    key = Turn(query.probe, np.roll(query.x, 1, axis=-1) + 0.5)
    found = [one.output() for one in (query, key)]
    moves_as_declared(query, found[0])
    scores, size = found[0] @ found[1].swapaxes(-1, -2), query.x.shape[-1]
    size *= 2 * float(query.size().max() * np.abs(key.x).max() + key.size().max())
    near(
        subject,
        scores[..., 1:, 1:],
        scores[..., :-1, :-1],
        size=size,
        what="scores of tokens that are all one place further",
    )


@check("rotary.turns-with-position")
def test_turns_with_position(subject: Subject, draw: Draw) -> None:
    case = of_one_vector(draw_turn(subject, draw, lengths=(3, 12), kinds=("none",)))
    found, declared = (_gaps(one[0, 0]) for one in (case.output(), case.expected()))
    finite(found, what="distance of turned tokens")
    one, other = (int(place) for place in np.unravel_index(found.argmin(), found.shape))
    holds(
        found.min() >= declared.min() / 2,
        f"The positions {one} and {other} turn one vector to two that differ by "
        f"{found.min():.3g}, and by {declared[one, other]:.3g} as declared.",
    )


def _gaps(rows: Annotated[Floats, "L E"]) -> Annotated[Floats, "L L"]:
    """Return the distances (L, L) of all rows (L, E), a large number from a row to itself."""
    gaps: Floats = np.linalg.norm(rows[:, None] - rows[None], axis=-1) + 1e6 * np.eye(len(rows))
    return gaps


@check("rotary.heads-alike")
def test_heads_alike(subject: Subject, draw: Draw) -> None:
    case = draw_turn(
        subject, draw, kinds=("none",), batch=draw.choose((2, 4)), heads=draw.several()
    )
    same = Turn(case.probe, np.broadcast_to(case.x[:1, :1], case.x.shape).copy())
    output = same.output()
    moves_as_declared(same, output)
    wanted = np.broadcast_to(output[:1, :1], output.shape)
    same_turns(same, output, wanted, times=2, what="turned x of equal heads")


@check("rotary.sequences-independent")
def test_sequences_independent(subject: Subject, draw: Draw) -> None:
    if subject.choices.rotary_scaling == "dynamic-ntk":
        raise Absent("dynamic scaling depends on the longest sequence")
    kinds = supported_kinds(subject, POSITION_KINDS)
    for kind in dict.fromkeys((kinds[0], kinds[-1])):
        _independent(draw_turn(subject, draw, kinds=(kind,), batch=draw.choose((3, 2))))


def _independent(case: Turn) -> None:
    """Demand that every sequence is turned as it is alone."""
    together = case.output()
    moves_as_declared(case, together)
    for number in range(len(case.x)):
        row = slice(number, number + 1)
        places = None if case.positions is None else case.positions[row]
        alone = Turn(case.probe, case.x[row], places)
        same_turns(alone, alone.output(), together[row], times=2, what="turned x alone")


@check("rotary.gradient")
def test_gradient(subject: Subject, draw: Draw) -> None:
    case = draw_turn(subject, draw)
    cotangent = draw.floats(*case.x.shape)
    pulled = case.probe.vjp((case.x, case.positions), cotangent)
    same_shape(pulled.output, case.x.shape)
    moves_as_declared(case, as_floats(pulled.output))
    back = {"forward": "backward", "backward": "forward"}[case.choices.rotary_direction]
    other = Turn(case.probe, cotangent, case.positions)
    wanted = other.expected(case.choices.but(rotary_direction=back))
    found = as_floats(gradient_to(pulled, 0, "x", case.x.shape))
    same_turns(other, found, wanted, what="gradient")
