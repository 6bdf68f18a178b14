"""What crosses between the contract and JAX: names of leaves, inputs, outputs, and what fits."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from attentest_spec.contract import Input, Output
from attentest_spec.mapping import Place
from attentest_spec.setting import Array


def word(entry: Any) -> str:
    """Return one step of a path through a tree: a key, a number or a field."""
    return str(next(getattr(entry, one) for one in ("key", "idx", "name") if hasattr(entry, one)))


def is_float(value: Any) -> bool:
    """Say whether `value` is an array of floats, JAX's or NumPy's."""
    return bool(hasattr(value, "dtype") and jax.dtypes.issubdtype(value.dtype, np.floating))


def parted(inputs: tuple[Input, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the arrays, of any shape, of `inputs`, and the numbers, as two tuples.

    A program is compiled anew for each number.
    """
    arrays = tuple(one if isinstance(one, np.ndarray) else None for one in inputs)
    return arrays, tuple(None if isinstance(one, np.ndarray) else one for one in inputs)


def joined(arrays: tuple[Any, ...], rest: tuple[Any, ...]) -> Iterator[Any]:
    """Return the inputs that were parted."""
    return (b if a is None else a for a, b in zip(arrays, rest, strict=True))


def outward(result: Any) -> Output:
    """Return what was computed as NumPy arrays."""
    if isinstance(result, tuple):
        return tuple(outward(one) for one in result)
    return np.array(result) if isinstance(result, jax.Array) else result


def held(own: Mapping[str, Array], name: str, place: Place) -> Mapping[str, Array]:
    """Return `own`, arrays of any shape, where it has the leaf that the map sends `name` to.

    Raises ValueError where it has not.
    """
    if not own.keys() & set(place.names(own)):
        raise ValueError(
            f"The parameter map sends {name} to {place.name}, which the tree does not have; "
            f"it has: {', '.join(sorted(own)) or 'none'}."
        )
    return own


def same_names(known: Collection[str], given: Collection[str]) -> None:
    """Raise ValueError where the names are not all there, or are more than there are."""
    missing, extra = sorted(set(known) - set(given)), sorted(set(given) - set(known))
    if missing or extra:
        raise ValueError(f"Cannot load: missing {missing or 'none'}, extra {extra or 'none'}.")


def same_shape(name: str, given: Array, room: tuple[int, ...]) -> None:
    """Raise ValueError where the array `given` as `name` has another shape than `room`."""
    if given.shape != room:
        raise ValueError(
            f"Cannot load {name}: its shape is {given.shape}, there is room for {room}."
        )
