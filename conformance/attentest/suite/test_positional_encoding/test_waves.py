"""Checks of the chapter `positional_encoding`: laws of sines and cosines."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_positional_encoding.cases import draw_call, same_rows, separates_positions
from attentest.testing.assertions import finite, holds
from attentest.testing.draw import Draw

SEPARATION = 0.1
"""Two of the first 40 positions differ by at least 0.13 on the circle of the fastest pair alone."""


@check("positional_encoding.first-row")
def test_first_row(subject: Subject, draw: Draw) -> None:
    if subject.choices.position_offset != "none":
        raise Absent(f"the first position is given row {subject.choices.position_offset:g}")
    case = draw_call(subject, draw, lengths=(1, 4), waves=True)
    first = case.added()[:, :1]
    sines, cosines = case.pairs(first)
    width = case.x.shape[-1]
    if width % 2:
        alone = width // 2 if case.option == "halves" else width - 1
        sines = np.concatenate((sines, first[..., alone : alone + 1]), axis=-1)
    size = case.size()[:1]
    same_rows(case, sines, np.zeros_like(sines), size, what="sines added")
    same_rows(case, cosines, np.ones_like(cosines), size, what="cosines added")


@check("positional_encoding.bounded")
def test_bounded(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, lengths=(2, 40), waves=True)
    added = case.added()
    separates_positions(case, added)
    beyond = np.maximum(np.abs(added) - 1.0, 0.0)
    same_rows(
        case, beyond, np.zeros_like(beyond), case.size(), what="distance from -1 and 1 of what is"
    )


@check("positional_encoding.pairs-on-circle")
def test_pairs_on_circle(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, lengths=(2, 40), waves=True)
    sines, cosines = case.pairs(case.added())
    squares = sines**2 + cosines**2
    # An error of one unit in both changes the sum of the squares by 2 (|sin| + |cos|) units.
    same_rows(case, squares, np.ones_like(squares), 3 * case.size(), what="sum of squares")


@check("positional_encoding.shift-is-rotation")
def test_shift_is_rotation(subject: Subject, draw: Draw) -> None:
    shift = draw.integer(1, max(1, min(5, (subject.limits.length or 7) - 2)))
    case = draw_call(subject, draw, lengths=(shift + 2, 24), waves=True)
    sines, cosines = case.pairs(case.added())
    hands = cosines + 1j * sines
    turns = hands[:, shift:] * hands[:, :-shift].conj()
    parts = np.concatenate((turns.real, turns.imag), axis=-1)
    # Both hands of a turn are off by up to the root of 2 units, and two turns are compared.
    size = 6 * case.size()[shift:]
    same_rows(
        case,
        parts,
        np.broadcast_to(parts[:, :1], parts.shape),
        size,
        what=f"turn by a shift of {shift}",
    )
    fastest = float(np.abs(turns[:, :, 0] - 1).min())
    holds(
        fastest > SEPARATION,
        f"A shift of {shift} turns the fastest pair by no more than {fastest}.",
    )


@check("positional_encoding.rows-differ")
def test_rows_differ(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, lengths=(2, 40), waves=True, batch=1)
    zeros = np.zeros_like(case.x)
    rows = case.added(zeros)[0]
    gaps = np.linalg.norm(rows[:, None] - rows[None], axis=-1) + 9 * np.eye(len(rows))
    finite(gaps, what="distance of the rows")
    one, other = sorted(int(place) for place in np.unravel_index(gaps.argmin(), gaps.shape))
    holds(
        gaps.min() > SEPARATION,
        f"The positions {one} and {other} are given rows that differ by {gaps.min():.3g}.",
    )
