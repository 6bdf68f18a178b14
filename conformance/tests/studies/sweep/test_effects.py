"""Effects of the factors of a sweep, on results that are made up."""

from itertools import product

import numpy as np
import pytest

from attentest.studies.learning.result import Point
from attentest.studies.sweep.effects import FEWEST, interactions, main_effects
from attentest.studies.sweep.record import Record

FACTORS = {"a": ("x", "y"), "b": (1, 2, 3)}
OF_A = {"x": 0.0, "y": 2.0}
OF_B = {1: 0.0, 2: -1.0, 3: 5.0}
BOTH = {("y", 3): 0.5}


def made(seeds: int, noise: float = 0.0) -> list[Record]:
    """Return trainings whose loss is a sum of effects, and of noise of their own."""
    rng = np.random.default_rng(1)
    return [
        record(a, b, seed, OF_A[a] + OF_B[b] + BOTH.get((a, b), 0.0) + seed + noise * rng.normal())
        for a, b, seed in product(OF_A, OF_B, range(seeds))
    ]


def record(a: str, b: int, seed: int, loss: float) -> Record:
    point = Point(9, loss, loss, 0.5, 0.25)
    return Record("", "paper", "copy", {}, {}, seed, (point,), levels={"a": a, "b": b})


def test_effects_are_differences_between_trainings_that_agree_in_all_else() -> None:
    found = main_effects(FACTORS, made(FEWEST), "validation")
    assert [(one.levels, one.base) for one in found] == [
        ({"a": "y"}, {"a": "x"}),
        ({"b": 2}, {"b": 1}),
        ({"b": 3}, {"b": 1}),
    ]
    wanted = [2 + 0.5 / 3, -1, 5 + 0.5 / 2]
    assert [one.difference for one in found] == pytest.approx(wanted)
    assert [one.pairs for one in found] == [3 * FEWEST, 2 * FEWEST, 2 * FEWEST]
    # Seeds differ by a whole number here, and no difference does: no interval has a width.
    assert [one.high for one in found] == pytest.approx([one.low for one in found])
    assert all(one.seen for one in found)


def test_an_interaction_is_what_two_levels_do_together_and_not_alone() -> None:
    found = interactions(FACTORS, made(FEWEST), "validation")
    assert {tuple(one.levels.values()): one.difference for one in found} == pytest.approx(
        {("y", 2): 0.0, ("y", 3): 0.5}
    )


@pytest.mark.proof
def test_no_difference_is_seen_where_the_interval_holds_0() -> None:
    same = [record(a, 1, seed, loss) for seed in range(9) for a, loss in (("x", 1.0), ("y", 1.0))]
    noisy = [
        record(a, 1, seed, loss)
        for seed in range(9)
        for a, loss in (("x", 0.0), ("y", (-1.0) ** seed * (1 + seed / 10)))
    ]
    for records in (same, noisy):
        (found,) = main_effects({"a": ("x", "y")}, records, "validation")
        assert found.seen is False


@pytest.mark.proof
def test_intervals_hold_the_true_effect_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(60):
        records = [
            record(a, 1, seed, OF_A[a] + rng.normal()) for seed in range(12) for a in ("x", "y")
        ]
        (found,) = main_effects({"a": ("x", "y")}, records, "validation")
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 2.0 <= found.high
    assert 48 <= hits <= 60  # 95 % asked for; few seeds give somewhat less


def test_few_seeds_have_no_interval() -> None:
    (found, *_) = main_effects(FACTORS, made(FEWEST - 1), "validation")
    assert (found.low, found.high, found.seen) == (None, None, None)


def test_a_training_that_failed_takes_part_in_no_difference() -> None:
    records = made(FEWEST)
    failed = Record("", "paper", "copy", {}, {}, 0, reason="it diverged", levels=records[0].levels)
    found = main_effects(FACTORS, [failed, *records[1:]], "validation")
    assert [one.pairs for one in found] == [3 * FEWEST - 1, 2 * FEWEST - 1, 2 * FEWEST - 1]
    assert main_effects({"a": ("x", "y")}, [failed], "validation") == []
