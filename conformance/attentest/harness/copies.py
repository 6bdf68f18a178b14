"""Copies of arrays that cross between the suite and a backend."""

from dataclasses import replace
from typing import Any

import numpy as np

from attentest_spec import Gradient
from attentest_spec.precision import dtype
from attentest_spec.setting import Array, Floats


def cast(values: Floats, precision: str) -> Floats:
    """Return float64 `values` rounded to `precision`: the same numbers for both sides."""
    return values.astype(dtype(precision)).astype(np.float64)


def copy_arrays(outcome: Any) -> Any:
    """Return `outcome` with copies of its arrays: a backend may write into what it returned."""
    if isinstance(outcome, np.ndarray):
        return outcome.copy()
    if isinstance(outcome, Gradient):
        return replace(
            outcome,
            output=copy_arrays(outcome.output),
            inputs=copy_arrays(outcome.inputs),
            parameters=copy_arrays(dict(outcome.parameters)),
        )
    if isinstance(outcome, tuple):
        return tuple(copy_arrays(one) for one in outcome)
    if isinstance(outcome, dict):
        return {name: copy_arrays(one) for name, one in outcome.items()}
    return outcome


def copy_with_layout(value: Array, wanted: np.dtype[Any]) -> Array:
    """Return a copy of `value` with its memory layout: in its order, a slice as a slice."""
    copy = np.array(value, dtype=wanted, copy=True, order="K")
    if value.ndim == 0 or value.strides[-1] != value.itemsize or value.flags.c_contiguous:
        return copy
    wide = np.zeros((*value.shape[:-1], value.shape[-1] + 1), dtype=wanted)
    wide[..., :-1] = copy
    return wide[..., :-1]
