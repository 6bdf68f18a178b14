"""Tensors as JSON: the precision by name, the shape, and the numbers as little-endian base64.

The round trip is bit-exact, NaN and infinities included.
"""

import base64
import binascii
import sys
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from attentest_spec.contract import Input
from attentest_spec.precision import PRECISIONS
from attentest_spec.setting import Array

TYPES: Mapping[str, np.dtype[Any]] = {
    **{name: np.dtype(kind) for name, kind in PRECISIONS.items()},
    "int64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}
"""The types of tensors, by their names in JSON."""

_SWAPPED = sys.byteorder == "big"


class Malformed(ValueError):
    """A value that is not a tensor; the message says what is wrong with it."""


def encode(array: Array) -> dict[str, Any]:
    """Return `array`, of any shape, as plain values; TypeError for another type."""
    names = [name for name, kind in TYPES.items() if kind == array.dtype]
    if not names:
        raise TypeError(
            f"An array of {array.dtype} cannot be encoded; the types are {', '.join(TYPES)}."
        )
    data = base64.b64encode(_little(array).tobytes()).decode("ascii")
    return {"dtype": names[0], "shape": list(array.shape), "data": data}


def encode_input(value: Input) -> Any:
    """Return an input of the contract as plain values: an array of any shape, int or None."""
    return encode(value) if isinstance(value, np.ndarray) else value


def decode(value: Any) -> Array:
    """Return the array, of any shape, that `value` encodes, in memory of its own.

    Raises Malformed where it is not a tensor.
    """
    if not isinstance(value, dict) or not {"dtype", "shape", "data"} <= value.keys():
        raise Malformed(f"a tensor has dtype, shape and data, and {_shorten(value)} does not")
    kind, shape = TYPES.get(str(value["dtype"])), value["shape"]
    if kind is None:
        raise Malformed(f"the dtype {_shorten(value['dtype'])} is not one of {', '.join(TYPES)}")
    if not isinstance(shape, list) or not all(type(one) is int and one >= 0 for one in shape):
        raise Malformed(f"the shape {_shorten(shape)} is not a list of whole numbers")
    data = _bytes(value["data"])
    if len(data) != prod(shape) * kind.itemsize:
        raise Malformed(
            f"{prod(shape)} numbers of {value['dtype']} in the shape {tuple(shape)} take "
            f"{prod(shape) * kind.itemsize} bytes, and data has {len(data)}"
        )
    if kind == np.bool_ and set(data) - {0, 1}:
        raise Malformed("a bool is a byte 0 or 1, and data has others")
    return _little(np.frombuffer(data, dtype=kind).reshape(shape)).copy()


def _bytes(data: Any) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (TypeError, ValueError, binascii.Error) as wrong:
        raise Malformed(f"data is not base64: {wrong}") from wrong


def _little(array: Array) -> Array:
    """Return `array` with swapped bytes on a big-endian machine, else unchanged."""
    return array.byteswap() if _SWAPPED else array


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + ".."
