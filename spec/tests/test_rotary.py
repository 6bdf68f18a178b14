"""The oracle of rotary positions against values by hand, closed forms and thirty decimal digits."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from attentest_spec.choices import PAPER, Value
from attentest_spec.rotary import frequencies, magnitude, rotary, scaled_base
from attentest_spec.setting import Floats, Setting
from attentest_spec.sizes import Sizes

SIZES = Sizes(rotary_factor=4.0, trained_length=16)
TURN = 2 * Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def given(**choices: Value) -> Setting:
    return Setting(SIZES, PAPER.but(**choices))


def row(numbers: list[float], position: int, **choices: Value) -> list[float]:
    """Return one vector, turned as at `position`."""
    x = np.array(numbers, dtype=float)[None, None, None]
    turned: Floats = rotary(given(**choices), x, np.array([[position]]))
    return [float(one) for one in turned[0, 0, 0]]


def waves(width: int, length: int = 1, **choices: Value) -> Floats:
    return frequencies(SIZES, PAPER.but(**choices), width, length)


def test_adjacent_pairs_by_hand() -> None:
    wanted = [math.cos(1), math.sin(1), math.cos(0.01), math.sin(0.01)]
    assert row([1, 0, 1, 0], 1) == pytest.approx(wanted, rel=1e-14)


def test_halves_by_hand() -> None:
    wanted = [math.cos(1), math.cos(0.01), math.sin(1), math.sin(0.01)]
    assert row([1, 1, 0, 0], 1, rotary_pairs="halves") == pytest.approx(wanted, rel=1e-14)


def test_second_column_turns_away_from_the_first() -> None:
    assert row([0, 1], 2) == pytest.approx([-math.sin(2), math.cos(2)], rel=1e-14)
    backward = row([0, 1], 2, rotary_direction="backward")
    assert backward == pytest.approx([math.sin(2), math.cos(2)], rel=1e-14)


@pytest.mark.parametrize("pairs", ["adjacent", "halves"])
def test_position_zero_changes_nothing(pairs: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, 1, 6))
    assert (rotary(given(rotary_pairs=pairs), x, None) == x).all()


def test_halves_are_adjacent_pairs_in_another_order(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, 5, 8))
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    adjacent = rotary(given(), x)
    halves = rotary(given(rotary_pairs="halves"), x[..., order])
    assert (halves == adjacent[..., order]).all()


@pytest.mark.parametrize("position", [0, 1, 31, 4999, 99_991])
@pytest.mark.parametrize("width", [2, 6, 128])
def test_equals_thirty_digits(position: int, width: int) -> None:
    with localcontext() as context:
        context.prec = 30
        angles = [
            float((position / Decimal(10000) ** (Decimal(2 * pair) / width)) % TURN)
            for pair in range(width // 2)
        ]
    wanted = [turn(one) for one in angles for turn in (math.cos, math.sin)]
    np.testing.assert_allclose(
        row([1, 0] * (width // 2), position), wanted, rtol=0, atol=4e-16 * (position + 2)
    )


def test_scores_depend_on_the_distance_alone(rng: np.random.Generator) -> None:
    query, key = rng.normal(size=(2, 1, 1, 1, 6))
    both = [
        rotary(given(), query, np.array([[5 + k]])) * rotary(given(), key, np.array([[2 + k]]))
        for k in (0, 3, 70)
    ]
    np.testing.assert_allclose([one.sum() for one in both], both[0].sum(), rtol=1e-12)


def test_score_of_two_unit_vectors_by_hand() -> None:
    one, other = row([1, 0], 5), row([1, 0], 2)
    assert sum(a * b for a, b in zip(one, other, strict=True)) == pytest.approx(math.cos(3))


def test_positions_are_those_of_every_sequence(rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 2, 4, 6))
    positions = np.array([[0, 1, 2, 3], [7, 7, 0, 1], [9, 2, 5, 4]])
    whole = rotary(given(), x, positions)
    for number, place in np.ndindex(3, 4):
        token = x[number : number + 1, :, place : place + 1]
        alone = rotary(given(), token, positions[number : number + 1, place : place + 1])
        assert (whole[number, :, place] == alone[0, :, 0]).all()


def test_base_by_hand() -> None:
    np.testing.assert_allclose(waves(4, rotary_base=500_000.0), [1, 500_000**-0.5], rtol=1e-15)


@pytest.mark.parametrize(("part", "turned"), [(0.5, 4), (0.25, 2), (0.4, 2), (0.9, 6)])
def test_part_of_the_columns_is_turned_as_a_narrow_head(
    part: float, turned: int, rng: np.random.Generator
) -> None:
    x = rng.normal(size=(1, 2, 5, 8))
    for pairs in ("adjacent", "halves"):
        found = rotary(given(rotary_width=part, rotary_pairs=pairs), x)
        narrow = rotary(given(rotary_pairs=pairs), x[..., :turned])
        assert (found[..., turned:] == x[..., turned:]).all()
        assert (found[..., :turned] == narrow).all()


def test_proportional_part_has_pairs_and_frequencies_of_the_whole_head(
    rng: np.random.Generator,
) -> None:
    x = rng.normal(size=(1, 2, 5, 8))
    part = {"rotary_width": 0.5, "rotary_partial": "proportional"}
    for pairs, turned in (("adjacent", [0, 1, 2, 3]), ("halves", [0, 1, 4, 5])):
        found = rotary(given(rotary_pairs=pairs, **part), x)
        whole = rotary(given(rotary_pairs=pairs), x)
        rest = sorted({*range(8)} - {*turned})
        assert (found[..., turned] == whole[..., turned]).all()
        assert (found[..., rest] == x[..., rest]).all()


def test_linear_scaling_by_hand() -> None:
    np.testing.assert_allclose(waves(4, rotary_scaling="linear"), [0.25, 0.0025], rtol=1e-15)


def test_ntk_scaling_divides_the_slowest_frequency_by_the_factor() -> None:
    found, plain = waves(8, rotary_scaling="ntk"), waves(8)
    assert found[0] == 1.0
    assert found[-1] == pytest.approx(plain[-1] / 4, rel=1e-14)
    assert scaled_base(SIZES, PAPER.but(rotary_scaling="ntk"), 4, 1) == pytest.approx(160_000)


def test_dynamic_scaling_begins_above_the_trained_length() -> None:
    dynamic = {"rotary_scaling": "dynamic-ntk"}
    assert (waves(8, 16, **dynamic) == waves(8)).all()
    # At twice the trained length the factor is 4 * 2 - 3.
    found = waves(8, 32, **dynamic)
    assert found[-1] == pytest.approx(waves(8)[-1] / 5, rel=1e-14)


def test_yarn_keeps_fast_pairs_and_divides_slow_ones() -> None:
    sizes, yarn = Sizes(rotary_factor=8.0, trained_length=4096), PAPER.but(rotary_scaling="yarn")
    found, plain = frequencies(sizes, yarn, 128, 1), frequencies(sizes, PAPER, 128, 1)
    # The pairs that turn 32 times and once have the numbers 20.9.. and 45.03..
    places = [128 * math.log(4096 / (2 * math.pi * n)) / (2 * math.log(10_000)) for n in (32, 1)]
    assert [math.floor(places[0]), math.ceil(places[1])] == [20, 46]
    np.testing.assert_allclose(found[:21], plain[:21], rtol=1e-14)
    np.testing.assert_allclose(found[46:], plain[46:] / 8, rtol=1e-14)
    half = plain[33] * (13 / 26 + 13 / 26 / 8)
    assert found[33] == pytest.approx(half, rel=1e-12)
    assert magnitude(sizes, yarn) == pytest.approx(0.1 * math.log(8) + 1)


def test_llama3_bands_by_hand() -> None:
    sizes = Sizes(rotary_factor=4.0, trained_length=628)
    llama = PAPER.but(rotary_scaling="llama3", rotary_base=40.0**2)
    found = frequencies(sizes, llama, 4, 1)  # 1 and 1/40: 99.9 turns, and 2.4987 of them
    kept = (628 / (2 * math.pi) / 40 - 1) / 3
    np.testing.assert_allclose(found, [1, kept / 40 + (1 - kept) / 160], rtol=1e-14)
    slow = frequencies(sizes, llama.but(rotary_base=1e6), 4, 1)
    np.testing.assert_allclose(slow, [1, 1e-3 / 4], rtol=1e-14)


def test_magnitude_multiplies_what_is_turned_and_nothing_else() -> None:
    assert row([1, 2, 3, 4], 0, rotary_magnitude=1.5, rotary_width=0.5) == [1.5, 3, 3, 4]
    assert magnitude(SIZES, PAPER) == 1.0


def test_single_precision_rounds_the_table(rng: np.random.Generator) -> None:
    found = row([1, 0], 3, rotary_arithmetic="float32")
    assert found == [float(np.float32(math.cos(3))), float(np.float32(math.sin(3)))]


def test_odd_column_is_left_as_it_is(rng: np.random.Generator) -> None:
    x = rng.normal(size=(1, 1, 4, 5))
    found = rotary(given(), x)
    assert (found[..., 4] == x[..., 4]).all()
    assert (found[..., :4] == rotary(given(), x[..., :4])).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [("rotary_base", 1), ("rotary_width", 1), ("rotary_width", 0), ("rotary_magnitude", -1)],
)
def test_impossible_numbers_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a number above .*; {value} is not"):
        PAPER.but(**{name: value})
