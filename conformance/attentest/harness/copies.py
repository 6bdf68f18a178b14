"""Copies of arrays that cross between the suite and a backend."""

from dataclasses import replace
from typing import Any

import numpy as np

from attentest_spec import Gradient
from attentest_spec.precision import dtype
from attentest_spec.setting import Array, Floats


def cast(values: Floats, precision: str) -> Floats:
    """Return float64 `values` rounded to `precision`: backend and oracle see the same."""
    return values.astype(dtype(precision)).astype(np.float64)


def kept(outcome: Any) -> Any:
    """Return `outcome` with copies of its arrays: a backend may write into what it returned."""
    if isinstance(outcome, np.ndarray):
        return outcome.copy()
    if isinstance(outcome, Gradient):
        return replace(
            outcome,
            output=kept(outcome.output),
            inputs=kept(outcome.inputs),
            parameters=kept(dict(outcome.parameters)),
        )
    if isinstance(outcome, tuple):
        return tuple(kept(one) for one in outcome)
    if isinstance(outcome, dict):
        return {name: kept(one) for name, one in outcome.items()}
    return outcome


def copied(value: Array, wanted: np.dtype[Any]) -> Array:
    """Return a copy of `value` that lies in memory as it does: in its order, a slice as a slice."""
    copied = np.array(value, dtype=wanted, copy=True, order="K")
    if value.ndim == 0 or value.strides[-1] != value.itemsize or value.flags.c_contiguous:
        return copied
    wide = np.zeros((*value.shape[:-1], value.shape[-1] + 1), dtype=wanted)
    wide[..., :-1] = copied
    return wide[..., :-1]
