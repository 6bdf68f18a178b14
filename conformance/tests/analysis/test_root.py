"""The root behind a numeric choice: as exact as halving an interval, in a quarter of the steps."""

import math

import pytest

from attentest.analysis.identify.numbers import _narrowed

MOST = 24
"""Evaluations for any number; halving takes more than 50."""


@pytest.mark.parametrize("root", [3.7e-30, 1e-12, 2.5e-6, 1e-5, 0.03, 7.0])
@pytest.mark.parametrize("share", [0.01, 1.0, 10.0])
def test_epsilon_is_found_in_few_steps(root: float, share: float) -> None:
    tried: list[float] = []
    variance = share * root

    def error(epsilon: float) -> float:
        tried.append(epsilon)
        return 1 / math.sqrt(variance + epsilon) - 1 / math.sqrt(variance + root)

    near, far = _narrowed((root / 9, error(root / 9)), (root * 11, error(root * 11)), error)
    assert min(abs(near - root), abs(far - root)) <= 1e-13 * root
    assert len(tried) <= MOST


def test_negative_numbers_are_found() -> None:
    near, far = _narrowed((-1e9, 5.0), (-1.0, -4.0), lambda value: math.log10(-value) - 4.0)
    assert near == pytest.approx(-1e4, rel=1e-14)
    assert far == pytest.approx(-1e4, rel=1e-14)


@pytest.mark.parametrize("end", [1e-5, 1e-3])
def test_root_at_an_end_is_found(end: float) -> None:
    points = [(value, value - end) for value in (1e-5, 1e-3)]
    assert end in _narrowed(points[0], points[1], lambda value: value - end)


def test_error_that_is_no_number_ends() -> None:
    assert _narrowed((1e-9, 1.0), (1e-3, -2.0), lambda value: math.nan)
