"""The positional oracle against values by hand and the formula at fifty decimal digits."""

import math
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest

from attentest_spec.choices import PAPER
from attentest_spec.positional_encoding import positional_encoding, table
from attentest_spec.setting import Setting

TURN = 2 * Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640629")
FIXED = ("interleaved", "halves", "halves-inclusive", "doubled-exponent")


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


def test_halves_inclusive_end_in_the_longest_wavelength_by_hand() -> None:
    rows = table(choosing("halves-inclusive"), 2, 6)
    angles = [1.0, 0.01, 0.0001]  # 10000 to the powers 0, -1/2 and -1
    expected = [[math.sin(one) for one in angles] + [math.cos(one) for one in angles]]
    np.testing.assert_allclose(rows, [[0, 0, 0, 1, 1, 1], *expected], rtol=1e-15)


@pytest.mark.parametrize("width", [4, 5])
def test_halves_inclusive_of_two_pairs_have_the_shortest_and_the_longest_wavelength(
    width: int,
) -> None:
    rows = table(choosing("halves-inclusive"), 2, width)
    expected = [math.sin(1), math.sin(1e-4), math.cos(1), math.cos(1e-4)]
    np.testing.assert_allclose(rows[1, :4], expected, rtol=1e-15)


@pytest.mark.parametrize(("width", "pairs"), [(1, 0), (2, 1), (3, 1), (5, 2), (7, 3), (9, 4)])
def test_halves_inclusive_leave_an_odd_column_empty(width: int, pairs: int) -> None:
    rows = table(choosing("halves-inclusive"), 3, width)
    assert rows[0].tolist() == [0.0] * pairs + [1.0] * pairs + [0.0] * (width % 2)
    assert not rows[:, 2 * pairs :].any()
    np.testing.assert_allclose(rows[1, :1], [math.sin(1)][:pairs] or [0.0], rtol=1e-15)


@pytest.mark.parametrize("option", FIXED)
@pytest.mark.parametrize("offset", [1, 2, 7])
def test_an_offset_skips_the_first_rows(option: str, offset: int) -> None:
    given = choosing(option)
    shifted = replace(given, choices=given.choices.but(position_offset=offset))
    assert (table(shifted, 5, 6) == table(given, 5 + offset, 6)[offset:]).all()


def test_offset_and_single_precision_are_both_applied() -> None:
    given = choosing("interleaved")
    both = given.choices.but(position_offset=2, position_arithmetic="float32")
    rounded = table(given, 7, 6).astype(np.float32)
    assert (table(replace(given, choices=both), 5, 6) == rounded[2:]).all()


def test_an_offset_of_nothing_is_nothing(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 5, 6))
    given = Setting(choices=PAPER.but(positional_encoding="none", position_offset=2))
    assert (positional_encoding(given, x) == x).all()


@pytest.mark.parametrize("option", FIXED)
def test_single_precision_is_the_nearest_float32(option: str) -> None:
    given = choosing(option)
    single = replace(given, choices=given.choices.but(position_arithmetic="float32"))
    exactly, rounded = table(given, 50, 6), table(single, 50, 6)
    assert rounded.dtype == np.float64
    assert (rounded == exactly.astype(np.float32)).all()
    assert 1e-9 < np.abs(rounded - exactly).max() <= 2.0**-25


@pytest.mark.parametrize("option", FIXED[:2] + FIXED[3:])
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


def test_learned_rows_are_scaled_and_offset(rng: np.random.Generator) -> None:
    weight = rng.normal(size=(11, 4))
    choices = PAPER.but(positional_encoding="learned-scaled", position_offset=2)
    given = Setting(choices=choices, parameters={"weight": weight})
    assert (positional_encoding(given, np.zeros((2, 9, 4))) == weight[2:] / 2.0).all()
    with pytest.raises(IndexError, match=r"\b10\b.*\b9\b"):
        positional_encoding(given, np.zeros((2, 10, 4)))


@pytest.mark.parametrize("offset", [1, 3, 7])
def test_learned_rows_begin_at_any_offset(rng: np.random.Generator, offset: int) -> None:
    weight = rng.normal(size=(offset + 4, 6))
    choices = PAPER.but(positional_encoding="learned", position_offset=offset)
    given = Setting(choices=choices, parameters={"weight": weight})
    assert (table(given, 4, 6) == weight[offset:]).all()
    with pytest.raises(IndexError, match="5 positions were requested, and the table has 4 rows"):
        table(given, 5, 6)


def test_single_precision_is_no_business_of_a_learned_table(rng: np.random.Generator) -> None:
    weight = rng.normal(size=(11, 4))
    choices = PAPER.but(positional_encoding="learned", position_arithmetic="float32")
    given = Setting(choices=choices, parameters={"weight": weight})
    assert (positional_encoding(given, np.zeros((1, 11, 4))) == weight).all()
