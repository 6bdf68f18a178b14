"""The tolerance of a table of positions: honest float32 inside it at every position, no mistake."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from oracle_backend import OracleBackend

from attentest.harness.subject import Subject
from attentest.harness.tolerances import error_bound, fits, rounding
from attentest.suite.test_positional_encoding.cases import EncodingCall
from attentest_spec import Sizes
from attentest_spec.setting import Array, Floats

LENGTH = 20_001
WIDTHS = (2, 5, 64)
SINGLE = np.float32


def of_logarithms(pairs: Array, width: int) -> Array:
    return np.exp(pairs * 2 * SINGLE(-np.log(10000.0) / width))


def of_logarithms_of_inverse(pairs: Array, width: int) -> Array:
    return np.exp(-(pairs * 2 / SINGLE(width)) * np.log(SINGLE(10000)))


def of_powers(pairs: Array, width: int) -> Array:
    return 1 / SINGLE(10000) ** (pairs * 2 / SINGLE(width))


def of_inverse_powers(pairs: Array, width: int) -> Array:
    return SINGLE(10000) ** (-(pairs * 2) / SINGLE(width))


def of_exact_numbers(pairs: Array, width: int) -> Array:
    return (10000.0 ** (-2 * pairs.astype(np.float64) / width)).astype(SINGLE)


HONEST = (
    of_logarithms,
    of_logarithms_of_inverse,
    of_powers,
    of_inverse_powers,
    of_exact_numbers,
)


def rows(
    frequencies: Callable[[Array, int], Array],
    width: int,
    length: int = LENGTH,
    first: int = 0,
    sine: Callable[[Array], Array] = np.sin,
    cosine: Callable[[Array], Array] = np.cos,
) -> Floats:
    """Return a table (length, width) that is computed in float32 throughout."""
    places = np.arange(first, first + length, dtype=SINGLE)[:, None]
    angles = places * frequencies(np.arange((width + 1) // 2, dtype=SINGLE), width)
    assert angles.dtype == SINGLE
    table = np.empty((length, width), SINGLE)
    table[:, 0::2], table[:, 1::2] = sine(angles), cosine(angles)[:, : width // 2]
    return table.astype(np.float64)


def share(table: Floats, offset: int = 0) -> Floats:
    """Return the error of each row (length,) as a share of its tolerance."""
    length, width = table.shape
    declared = {"position_arithmetic": "float32"} | ({"position_offset": offset} if offset else {})
    subject = Subject(OracleBackend(choices=declared))
    part = subject.part("positional_encoding", Sizes(d_model=width, heads=1, max_length=length))
    case = EncodingCall(part, np.zeros((1, length, width)))
    found: Floats = np.abs(table - case.table()).max(axis=-1) / case.size() / rounding("float64", 1)
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("frequencies", HONEST)
def test_honest_table_in_single_precision_is_inside_at_every_position(
    frequencies: Callable[[Array, int], Array], width: int
) -> None:
    assert share(rows(frequencies, width)).max() <= 1
    assert share(rows(frequencies, width, first=2), offset=2).max() <= 1


def halved(pairs: Array, width: int) -> Array:
    return of_powers(pairs / 2, width)


def base_of_a_thousand(pairs: Array, width: int) -> Array:
    return SINGLE(1000) ** (-(pairs * 2) / SINGLE(width))


def divided_as_integers(pairs: Array, width: int) -> Array:
    return SINGLE(10000) ** -(pairs * 2 // SINGLE(width))


def base_slightly_off(pairs: Array, width: int) -> Array:
    return SINGLE(9999) ** (-(pairs * 2) / SINGLE(width))


MISTAKES = {
    "exponent halved": partial(rows, halved),
    "base 1000": partial(rows, base_of_a_thousand),
    "base 9999": partial(rows, base_slightly_off),
    "integer division": partial(rows, divided_as_integers),
    "one row late": partial(rows, of_powers, first=1),
    "sines and cosines swapped": partial(rows, of_powers, sine=np.cos, cosine=np.sin),
    "positions in half": partial(rows, of_powers, sine=lambda x: np.sin(x.astype(np.float16))),
}


@pytest.mark.parametrize("width", WIDTHS[1:])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_in_single_precision_is_outside_from_near_positions_on(
    mistake: str, width: int
) -> None:
    """Twelve rows show it, as many as most checks draw."""
    assert share(MISTAKES[mistake](width, length=12)).max() > 1


def test_first_row_has_no_tolerance_of_single_precision() -> None:
    table = rows(of_powers, 6, length=3)
    table[0] += 1e-9
    assert share(table)[0] > 1


@pytest.mark.parametrize("frequencies", HONEST)
def test_model_with_an_honest_table_fits_and_with_a_mistaken_one_does_not(
    frequencies: Callable[[Array, int], Array],
) -> None:
    sizes = Sizes(d_model=64, heads=2, layers=2, source_vocabulary=11, target_vocabulary=11)
    choices = {"position_arithmetic": "float32", "norm_placement": "pre"}
    probe = Subject(OracleBackend(choices=choices)).part("model", sizes)
    probe.parameters = dict(probe.part.export())
    rng = np.random.default_rng(1)
    inputs = rng.integers(1, 11, (2, 9)), rng.integers(1, 11, (2, 12))
    declared = probe.subject.choices
    learned = declared.but(positional_encoding="learned")
    given = dict(probe.parameters)

    def answer(table: Floats) -> Array:
        names = ("source_positions.weight", "target_positions.weight")
        probe.parameters = given | dict.fromkeys(names, table)
        found: Array = probe.expected(*inputs, choices=learned).output
        probe.parameters = given
        return found

    honest = answer(rows(frequencies, 64, length=12))
    assert not fits(
        probe, *inputs, actual=honest, choices=declared.but(position_arithmetic="as-computed")
    )
    assert fits(probe, *inputs, actual=honest, choices=declared)
    wrong = answer(rows(base_slightly_off, 64, length=12))
    assert not fits(probe, *inputs, actual=wrong, choices=declared)
    exact = probe.expected(*inputs).output
    assert error_bound(probe, inputs, exact) < 1e-3
