"""Tensors of the stdio protocol: the round trip through JSON, and malformed ones."""

import json

import numpy as np
import pytest

from attentest_spec.stdio.tensors import TYPES, Malformed, decode, encode


@pytest.mark.parametrize("kind", TYPES)
def test_tensor_round_trip_is_bit_exact(kind: str) -> None:
    drawn = np.random.default_rng(0).integers(0, 256, size=(2, 3, 8), dtype=np.uint8)
    there = (drawn % 2 == 1) if kind == "bool" else drawn.view(TYPES[kind])
    back = decode(json.loads(json.dumps(encode(there))))
    assert back.dtype == there.dtype
    assert back.shape == there.shape
    assert back.tobytes() == there.tobytes()  # every NaN with its bits


def test_encode_is_little_endian_in_order_for_any_strides() -> None:
    turned = np.arange(6.0).reshape(2, 3).T
    encoded = encode(turned)
    assert encoded["shape"] == [3, 2]
    assert decode(encoded).tolist() == turned.tolist()
    assert encode(np.array([1.0, np.inf]))["data"] == "AAAAAAAA8D8AAAAAAADwfw=="


def test_empty_tensor_and_tensor_without_axes_keep_their_shape() -> None:
    for array in (np.zeros((0, 3)), np.array(2.5)):
        assert decode(encode(array)).shape == array.shape


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="complex128 cannot be encoded"):
        encode(np.zeros(1, dtype=complex))
    with pytest.raises(Malformed, match="not base64"):
        decode({"dtype": "float64", "shape": [1], "data": "ä"})
