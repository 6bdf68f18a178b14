"""Copies of arrays that cross between the suite and a backend."""

from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from attentest_spec import Gradient
from attentest_spec.precision import dtype
from attentest_spec.setting import Array, Floats


def cast(values: Annotated[Floats, "*shape"], precision: str) -> Annotated[Floats, "*shape"]:
    """Return float64 `values` of any shape rounded to `precision`: the same for both sides."""
    narrow = values.astype(dtype(precision))
    return narrow if narrow.dtype == np.float64 else narrow.astype(np.float64)


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


def copy_with_layout(
    value: Annotated[Array, "*shape"], wanted: np.dtype[Any]
) -> Annotated[Array, "*shape"]:
    """Return a copy of `value`, of any shape, with its memory layout: a slice as a slice."""
    copy = np.array(value, dtype=wanted, copy=True, order="K")
    if value.ndim == 0 or value.strides[-1] != value.itemsize or value.flags.c_contiguous:
        return copy
    wide = np.zeros((*value.shape[:-1], value.shape[-1] + 1), dtype=wanted)
    wide[..., :-1] = copy
    return wide[..., :-1]
