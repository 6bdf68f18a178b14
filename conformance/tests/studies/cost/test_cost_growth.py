"""Fits find the growth that was planted, and know how sure they are of it."""

import numpy as np
import pytest

from attentest.studies.cost.growth import polynomial, shares, slope

SIZES = (32, 64, 128, 256, 512)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 1.5, 2.0])
def test_a_planted_exponent_is_found_without_noise(exponent: float) -> None:
    found = slope(SIZES, [[3.0 * size**exponent] for size in SIZES])
    assert found.exponent == pytest.approx(exponent, abs=1e-12)
    assert found.error is None


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_the_error_of_an_exponent_is_what_repeating_shows(exponent: float) -> None:
    """Of 400 noisy measurements the error told is the spread of the exponents found."""
    rng = np.random.default_rng(0)
    found = [
        slope(SIZES, [size**exponent * np.exp(0.05 * rng.normal(size=41)) for size in SIZES])
        for _ in range(400)
    ]
    exponents = np.array([one.exponent for one in found])
    told = np.median([one.error for one in found if one.error is not None])
    # The mean of 400 lies within 5 of its standard errors; a spread of 400 is known to 1 / 20.
    assert abs(exponents.mean() - exponent) < 5 * exponents.std() / 20
    assert 0.75 < exponents.std() / told < 1.25


def test_interrupted_calls_change_an_exponent_little() -> None:
    rng = np.random.default_rng(0)
    samples = [size * np.exp(0.01 * rng.normal(size=21)) for size in SIZES]
    samples[-1][:3] *= 50
    assert slope(SIZES, samples).exponent == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    "terms", [(5.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 0.5), (7.0, 3.0, 0.01), (0.0, 3.0, 0.2)]
)
def test_planted_terms_are_found(terms: tuple[float, float, float]) -> None:
    a, b, c = terms
    found = polynomial(SIZES, [a + b * n + c * n**2 for n in SIZES])
    assert found == pytest.approx(terms, rel=1e-9, abs=1e-9)


def test_no_term_is_negative() -> None:
    """Values that bend downward have a negative square; the nearest sound fit has none."""
    found = polynomial(SIZES, [n**0.5 for n in SIZES])
    assert min(found) >= 0
    assert found[2] == 0


def test_shares_are_parts_of_a_whole() -> None:
    assert shares((1.0, 2.0, 3.0), 1) == pytest.approx((1 / 6, 2 / 6, 3 / 6))
    assert shares((0.0, 0.0, 3.0), 7) == (0, 0, 1)


def test_too_few_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="two sizes"):
        slope([8], [[1.0]])
    with pytest.raises(ValueError, match="three sizes"):
        polynomial([8, 16], [1.0, 2.0])
