"""Rotations whose angles do not grow evenly with the position, as those of images do not.

There each position has a row and a column, and pairs of columns are turned by the one or the other.
"""

import numpy as np

from attentest.targets.adapt.reading import Uncovered
from attentest.targets.adapt.rotary.forms import Form
from attentest.targets.adapt.rotary.measuring import SIZES, answer
from attentest_spec.setting import Array, Floats

_LENGTHS = (80, 40, 24, 12)
"""Lengths that are tried, the longest first: a row of an image is shorter."""

_CLOSE = 1e-3
"""The largest difference of a turned pair of length 1 in single precision."""


def demand_even_angles(own: str, form: Form) -> None:
    """Raise Uncovered where pairs are turned, by angles that do not grow evenly with positions."""
    for turned in _turned(form):
        steps = turned[1:] / turned[:-1]
        uneven = np.abs(steps - steps[0]).max(axis=1) > _CLOSE
        if uneven.any():
            place = int(uneven.argmax())
            raise Uncovered(
                f"{own} turns pairs of columns by angles that do not grow evenly with the "
                f"position: from position {place} to {place + 1}, counted from 0, they grow by "
                f"others than from 0 to 1. Positions on two axes, as those of images, are not "
                f"judged; on one axis this is a mistake. --anyway (in Python: anyway=True) judges "
                f"it as rotary positions on one axis."
            )


def _turned(form: Form) -> list[Array]:
    """Return the factors (L, pairs) by which pairs are turned as complex numbers, [] for none."""
    source = np.random.default_rng(5)
    for length in _LENGTHS:
        x = source.normal(size=(2, 2, length, SIZES.d_model // SIZES.heads))
        found = answer(form, x, None, sizes=SIZES.but(max_length=length))
        if found is not None:
            pairings = (_adjacent, _halves)
            every = [pairing(found) / pairing(x) for pairing in pairings]
            return [one[0, 0] for one in every if _is_rotation(one)]
    return []


def _is_rotation(factors: Array) -> bool:
    """Say whether factors (B, H, L, pairs) are those of angles, the same for every head."""
    return bool(
        np.isfinite(factors).all()
        and np.abs(np.abs(factors) - 1).max() <= _CLOSE
        and np.abs(factors - factors[:1, :1]).max() <= _CLOSE
    )


def _adjacent(x: Floats) -> Array:
    return np.asarray(x[..., 0::2] + 1j * x[..., 1::2])


def _halves(x: Floats) -> Array:
    half = x.shape[-1] // 2
    return np.asarray(x[..., :half] + 1j * x[..., half:])
