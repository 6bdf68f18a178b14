"""Conversion between the contract and JAX: names of leaves, inputs and outputs."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from attentest_spec.contract import Input, Output


def step_name(entry: Any) -> str:
    """Return the name of one step of a path through a tree: a key, a number or a field."""
    return str(next(getattr(entry, one) for one in ("key", "idx", "name") if hasattr(entry, one)))


def is_float(value: Any) -> bool:
    """Say whether `value` is an array of floats, JAX's or NumPy's."""
    return bool(hasattr(value, "dtype") and jax.dtypes.issubdtype(value.dtype, np.floating))


def split_inputs(inputs: tuple[Input, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the arrays, of any shape, of `inputs`, and the numbers, as two tuples.

    A program is compiled anew for each number.
    """
    arrays = tuple(one if isinstance(one, np.ndarray) else None for one in inputs)
    return arrays, tuple(None if isinstance(one, np.ndarray) else one for one in inputs)


def join_inputs(arrays: tuple[Any, ...], rest: tuple[Any, ...]) -> Iterator[Any]:
    """Return the inputs in their order again; the inverse of :func:`split_inputs`."""
    return (b if a is None else a for a, b in zip(arrays, rest, strict=True))


def to_output(result: Any) -> Output:
    """Return the result of a call as NumPy arrays of the same shapes."""
    if isinstance(result, tuple):
        return tuple(to_output(one) for one in result)
    return np.array(result) if isinstance(result, jax.Array) else result
