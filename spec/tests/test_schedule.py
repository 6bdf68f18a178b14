"""The schedule of the learning rate against rates by hand, and against its laws."""

from math import sqrt

import numpy as np
import pytest

from attentest_spec.choices import CHOICES, Choices
from attentest_spec.schedule import learning_rate
from attentest_spec.setting import Setting
from attentest_spec.sizes import Sizes

SMALL = Sizes(d_model=4, warmup=4, total_steps=12)
SCHEDULES = [option.name for option in CHOICES["schedule"].options]


def rate(step: int, sizes: Sizes = SMALL, schedule: str = "noam", first: str = "one") -> float:
    given = Setting(sizes, Choices(schedule=schedule, first_step=first))
    found = learning_rate(given, step)
    assert found.shape == ()
    assert found.dtype == np.float64
    return float(found)


@pytest.mark.parametrize(
    ("step", "expected"),
    [(1, 1 / 16), (2, 1 / 8), (3, 3 / 16), (4, 1 / 4), (16, 1 / 8), (64, 1 / 16), (100, 1 / 20)],
)
def test_rates_of_the_paper_by_hand(step: int, expected: float) -> None:
    assert rate(step) == pytest.approx(expected, rel=1e-15)


def test_rates_at_the_sizes_of_the_paper() -> None:
    sizes = Sizes(d_model=512, warmup=4000)
    assert rate(1, sizes) == pytest.approx(1.7469e-7, rel=1e-4)
    assert rate(4000, sizes) == pytest.approx(6.9877e-4, rel=1e-4)
    for step in (1, 3999, 4000, 4001, 100_000):
        formula = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert rate(step, sizes) == pytest.approx(formula, rel=1e-14)


@pytest.mark.parametrize(
    ("schedule", "step", "expected"),
    [
        ("inverse-root", 16, 0.5),
        ("linear", 8, 0.5),
        ("linear", 11, 0.125),
        ("linear", 12, 0.0),
        ("linear", 13, 0.0),
        ("cosine", 6, (2 + sqrt(2)) / 4),
        ("cosine", 8, 0.5),
        ("cosine", 12, 0.0),
        ("cosine", 20, 0.0),
        ("constant", 12, 1.0),
    ],
)
def test_rates_of_the_others_by_hand(schedule: str, step: int, expected: float) -> None:
    assert rate(step, schedule=schedule) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_pieces_meet_at_the_peak(schedule: str) -> None:
    found = [rate(step, schedule=schedule) for step in range(1, 12)]
    peak = 0.25 if schedule == "noam" else 1.0
    assert found[:4] == pytest.approx([peak * step / 4 for step in (1, 2, 3, 4)], rel=1e-14)
    assert max(found) == found[3]
    assert found[3:] == sorted(found[3:], reverse=True)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_counting_from_zero_comes_one_update_late(schedule: str) -> None:
    assert rate(1, schedule=schedule, first="zero") == 0.0
    for step in (2, 5, 9):
        late = rate(step, schedule=schedule, first="zero")
        assert late == rate(step - 1, schedule=schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_factor_and_width(schedule: str) -> None:
    wide = SMALL.but(d_model=64, factor=3.0)
    share = 0.75 if schedule == "noam" else 3.0
    for step in (1, 4, 9):
        expected = share * rate(step, schedule=schedule)
        assert rate(step, wide, schedule) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("warmup", [0, -3])
def test_warmup_without_steps_is_refused(schedule: str, warmup: int) -> None:
    with pytest.raises(ValueError, match=f"The warm-up is {warmup};"):
        rate(1, SMALL.but(warmup=warmup), schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warmup_of_one_step_begins_at_the_peak(schedule: str) -> None:
    short = SMALL.but(warmup=1)
    assert rate(1, short, schedule) == pytest.approx(0.5 if schedule == "noam" else 1.0, rel=1e-15)
    assert rate(2, short, schedule) <= rate(1, short, schedule)
