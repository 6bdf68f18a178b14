"""Conversion between the contract and torch: precisions, arrays and tensors."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch import Tensor, nn

from attentest_spec.contract import Output
from attentest_spec.names import require
from attentest_spec.setting import Array
from attentest_spec.torch.inventory import follow

DTYPES: Mapping[str, torch.dtype] = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


NUMBERS = (int, float, np.number)
"""The types of numbers that are no arrays."""


def to_tensor(array: Array) -> Tensor:
    """Return `array` as a tensor of the same shape, precision and strides.

    Memory is shared, except where torch does not allow it: read-only arrays and negative strides.
    """
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def to_array(tensor: Tensor) -> Array:
    """Return `tensor` as an array of the same shape and precision."""
    plain = tensor.detach().cpu()
    if plain.dtype == torch.bfloat16:
        return plain.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


def to_output(result: Any, device: str) -> Output:
    """Return `result` as arrays of the contract; ValueError where it is not on `device`, if any.

    A number of Python or NumPy, such as a learning rate, is an array without axes. Whole numbers,
    such as the tokens that were decoded, may lie anywhere.
    """
    if isinstance(result, tuple):
        return tuple(to_output(one, device) for one in result)
    if isinstance(result, NUMBERS) and not isinstance(result, bool):
        return np.asarray(result, dtype=None if isinstance(result, np.generic) else np.float64)
    if not isinstance(result, Tensor):
        return result
    if device and result.device.type != device and not _is_whole(result):
        raise ValueError(f"The output lies on {result.device.type}, and the inputs on {device}.")
    return to_array(result)


def _is_whole(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.dtype == torch.bool)


def torch_dtype(precision: str) -> torch.dtype:
    """Return the dtype of a precision; UnknownName where there is none."""
    return DTYPES[require("precision", precision, DTYPES)]


def convert(module: nn.Module, precision: str, device: str) -> nn.Module:
    """Move `module` to `device` and its real numbers to `precision`, and return it.

    Complex buffers, as tables of rotary positions are, stay complex: `Module.to(dtype)` discards
    their imaginary part. UnknownName for a precision that is none.
    """
    dtype = torch_dtype(precision)
    if type(module).to is not nn.Module.to:
        return cast_real(module.to(device), dtype)
    before = dict(module.named_parameters()) if device == "meta" else {}
    # In one pass over the modules inside, not in one to move and another to cast.
    converted: nn.Module = module._apply(  # type: ignore[no-untyped-call]  # torch leaves it untyped
        lambda one: one.to(device, dtype if one.is_floating_point() else None)
    )
    if device == "meta":
        after = dict(converted.named_parameters())
        follow(converted, {id(one): after[name] for name, one in before.items()})
    return converted


def cast_real(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Cast the real numbers of `module` to `dtype`, and return it; complex ones stay complex."""
    casts = {
        torch.float64: nn.Module.double,
        torch.float32: nn.Module.float,
        torch.bfloat16: nn.Module.bfloat16,
        torch.float16: nn.Module.half,
    }
    return casts[dtype](module)
