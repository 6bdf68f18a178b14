"""The positional oracle against values by hand and the formula at fifty decimal digits."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from attentest_spec.choices import PAPER
from attentest_spec.positional_encoding import positional_encoding, table
from attentest_spec.setting import Setting

TURN = 2 * Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640629")
FIXED = ("interleaved", "halves", "doubled-exponent")


def choosing(option: str) -> Setting:
    return Setting(choices=PAPER.but(positional_encoding=option))


def exact(position: int, column: int, width: int, doubling: int = 1) -> float:
    """Compute one entry of the interleaved table with fifty digits."""
    with localcontext() as context:
        context.prec = 50
        exponent = Decimal(2 * doubling * (column // 2)) / width
        angle = float((position / Decimal(10000) ** exponent) % TURN)
    return math.cos(angle) if column % 2 else math.sin(angle)


def test_first_rows_by_hand() -> None:
    rows = table(choosing("interleaved"), 2, 4)
    expected = [[0.0, 1.0, 0.0, 1.0], [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)]]
    np.testing.assert_allclose(rows, expected, rtol=1e-15)


def test_halves_put_all_sines_first() -> None:
    rows = table(choosing("halves"), 2, 4)
    expected = [[0.0, 0.0, 1.0, 1.0], [math.sin(1), math.sin(0.01), math.cos(1), math.cos(0.01)]]
    np.testing.assert_allclose(rows, expected, rtol=1e-15)


def test_doubled_exponent_by_hand() -> None:
    rows = table(choosing("doubled-exponent"), 2, 4)
    expected = [[0.0, 1.0, 0.0, 1.0], [math.sin(1), math.cos(1), math.sin(1e-4), math.cos(1e-4)]]
    np.testing.assert_allclose(rows, expected, rtol=1e-15)


@pytest.mark.parametrize("width", [1, 2, 5, 6, 7, 12, 512])
@pytest.mark.parametrize("position", [0, 1, 2, 31, 4999, 99_991])
@pytest.mark.parametrize(("option", "doubling"), [("interleaved", 1), ("doubled-exponent", 2)])
def test_equals_fifty_digits(width: int, position: int, option: str, doubling: int) -> None:
    found = table(choosing(option), position + 1, width)[-1]
    expected = [exact(position, column, width, doubling) for column in range(width)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2.3e-16 * (position + 2))


@pytest.mark.parametrize("width", [1, 5, 6, 7])
def test_halves_are_the_interleaved_columns_in_another_order(width: int) -> None:
    interleaved = table(choosing("interleaved"), 11, width)
    order = [*range(0, width, 2), *range(1, width, 2)]
    assert (table(choosing("halves"), 11, width) == interleaved[:, order]).all()


@pytest.mark.parametrize("option", FIXED)
def test_an_odd_width_ends_in_a_sine_without_partner(option: str) -> None:
    rows = table(choosing(option), 3, 5)
    assert rows.shape == (3, 5)
    assert sorted(rows[0]) == [0, 0, 0, 1, 1]


def test_a_shift_is_a_rotation() -> None:
    rows = table(choosing("interleaved"), 40, 6)
    for pair in range(3):
        turn = 7 / 10000 ** (2 * pair / 6)
        rotation = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
        columns = rows[:, 2 * pair : 2 * pair + 2]
        np.testing.assert_allclose(columns[:-7] @ rotation.T, columns[7:], atol=1e-13)


@pytest.mark.parametrize("option", FIXED)
def test_a_longer_table_starts_with_the_shorter(option: str) -> None:
    assert (table(choosing(option), 13, 6)[:7] == table(choosing(option), 7, 6)).all()


def test_the_same_rows_are_added_to_every_sample(rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 5, 6))
    given = choosing("interleaved")
    np.testing.assert_allclose(
        positional_encoding(given, x), x + table(given, 5, 6)[None], rtol=1e-15
    )


def test_none_adds_nothing(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 5, 6))
    assert (positional_encoding(choosing("none"), x) == x).all()


def test_learned_rows_are_those_of_the_table(rng: np.random.Generator) -> None:
    weight = rng.normal(size=(11, 6))
    given = Setting(choices=PAPER.but(positional_encoding="learned"), parameters={"weight": weight})
    assert (positional_encoding(given, np.zeros((2, 5, 6))) == weight[:5]).all()
    assert (positional_encoding(given, np.zeros((2, 11, 6))) == weight).all()
    with pytest.raises(IndexError, match=r"\b12\b.*\b11\b"):
        positional_encoding(given, np.zeros((2, 12, 6)))
