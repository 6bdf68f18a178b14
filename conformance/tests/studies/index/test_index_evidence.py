"""The evidence of a mistake, from curves that are written by hand."""

from collections.abc import Sequence

import pytest

from attentest.studies.index.evidence import FLOOR, Evidence, evidence, strongest
from attentest.studies.learning.result import Point
from attentest.studies.sweep.record import Record

Curve = Sequence[tuple[float, float, float]]
"""The training loss, the held-out loss and the tokens that are right, at each point."""


def record(seed: int, curve: Curve, reason: str = "") -> Record:
    points = tuple(
        Point(50 * (place + 1), training, validation, tokens, 0.0)
        for place, (training, validation, tokens) in enumerate(curve)
    )
    start = Point(0, None, 3.0, 0.0, 0.0)
    return Record("", "paper", "copy", {}, {}, seed, (start, *points), reason=reason)


CORRECT = [record(seed, [(1.0 + 0.1 * seed, 0.5 + 0.1 * seed, 0.9)]) for seed in range(3)]


def moved(by: float, place: int) -> list[Record]:
    """Return the correct curves with one of the measures moved."""
    return [
        record(
            seed,
            [tuple(one + by * (where == place) for where, one in enumerate(_last(CORRECT[seed])))],
        )
        for seed in range(3)
    ]


def _last(one: Record) -> tuple[float, float, float]:
    end = one.points[-1]
    assert end.training is not None
    return end.training, end.validation, end.tokens


def test_a_training_that_fails_stops() -> None:
    faulty = [*CORRECT[:2], record(2, [], "its loss is nan")]
    assert evidence(faulty, CORRECT) is Evidence.STOPS


def test_equal_numbers_are_unchanged_and_a_last_digit_is_not() -> None:
    assert evidence(moved(0.0, 0), CORRECT) is Evidence.UNCHANGED
    assert evidence(moved(1e-15, 0), CORRECT) is Evidence.NOTHING


@pytest.mark.parametrize("sign", [1, -1])
def test_a_loss_shows_a_mistake_beyond_the_range_of_the_seeds_on_either_side(sign: int) -> None:
    assert evidence(moved(sign * 0.19, 0), CORRECT) is Evidence.NOTHING
    assert evidence(moved(sign * 0.21, 0), CORRECT) is Evidence.TRAINING
    assert evidence(moved(sign * 0.21, 1), CORRECT) is Evidence.VALIDATION


def test_the_range_is_that_of_the_usual_model_where_it_is_larger() -> None:
    usual = [record(seed, [(1.0 + 0.3 * seed, 0.5, 0.9)]) for seed in range(6)]
    assert evidence(moved(0.21, 0), CORRECT, usual) is Evidence.NOTHING
    assert evidence(moved(1.6, 0), CORRECT, usual) is Evidence.TRAINING


def test_accuracy_without_a_range_has_a_floor() -> None:
    assert evidence(moved(-0.9 * FLOOR, 2), CORRECT) is Evidence.NOTHING
    assert evidence(moved(-1.1 * FLOOR, 2), CORRECT) is Evidence.ACCURACY


def test_every_point_of_the_losses_counts() -> None:
    late = [(0.2, 0.1, 0.9)]
    correct = [record(seed, [*[_last(CORRECT[seed])], *late]) for seed in range(3)]
    faulty = [record(one.seed, [*[_last(one)], *late]) for one in moved(0.5, 0)]
    assert evidence(faulty, correct) is Evidence.TRAINING


def test_a_correct_training_that_fails_is_nothing_to_compare_with() -> None:
    with pytest.raises(ValueError, match="its loss is nan"):
        evidence(CORRECT, [*CORRECT[:2], record(2, [], "its loss is nan")])


def test_the_most_visible_evidence_counts() -> None:
    assert strongest((Evidence.NOTHING, Evidence.VALIDATION, Evidence.UNCHANGED)) is (
        Evidence.VALIDATION
    )
