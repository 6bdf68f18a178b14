"""The facts of the precisions, by their definitions."""

import ml_dtypes
import numpy as np
import pytest

from attentest_spec.precision import dtype, epsilon, largest, smallest

FACTS = [
    ("float64", np.float64, 52, 1024),
    ("float32", np.float32, 23, 128),
    ("bfloat16", ml_dtypes.bfloat16, 7, 128),
    ("float16", np.float16, 10, 16),
]
"""Name, type, digits after the first, and the exponent from which numbers overflow."""


@pytest.mark.parametrize(("name", "carrier", "digits", "exponent"), FACTS)
def test_a_precision(name: str, carrier: type, digits: int, exponent: int) -> None:
    assert dtype(name) == np.dtype(carrier)
    assert epsilon(name) == 2.0**-digits
    assert smallest(name) == 2.0 ** (2 - exponent - digits)
    assert largest(name) == (2.0 - 2.0**-digits) * 2.0 ** (exponent - 1)
