"""The floating-point formats that a backend can compute in."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

PRECISIONS: Mapping[str, npt.DTypeLike] = {
    "float64": np.float64,
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
}
"""Names of the precisions and the NumPy types that carry them across the contract."""


def dtype(precision: str) -> np.dtype[np.generic]:
    """Return the NumPy type that carries `precision`."""
    return np.dtype(PRECISIONS[precision])


def epsilon(precision: str) -> float:
    """Return the distance from 1 to the next number of `precision`."""
    return _facts(precision)[0]


def largest(precision: str) -> float:
    """Return the largest finite number of `precision`."""
    return _facts(precision)[1]


def smallest(precision: str) -> float:
    """Return the smallest positive number of `precision`."""
    return _facts(precision)[2]


def least(precision: str) -> float:
    """Return the rounding of numbers near 0 where it counts: in float16, and else 0."""
    return smallest(precision) if precision == "float16" else 0.0


def _facts(precision: str) -> tuple[float, float, float]:
    facts: Any = ml_dtypes.finfo(PRECISIONS[precision])  # type: ignore[no-untyped-call]
    return float(facts.eps), float(facts.max), float(facts.smallest_subnormal)
