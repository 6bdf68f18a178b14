"""Simple operations on the device meta, without the compiler that torch imports for them.

A tensor on meta has a shape and no numbers. Torch finds the shape of most results in Python code
that first imports its compiler and symbolic algebra: more than a second of processor time to
compare tokens with a pad id.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_OPERATIONS = """
eq ne lt le gt ge and or xor invert bitwise_and bitwise_or bitwise_xor bitwise_not
logical_and logical_or logical_xor logical_not tril triu masked_fill where
add radd sub rsub mul rmul div truediv sin cos exp pow rpow
arange ones_like zeros_like full_like repeat stack cat concat
"""
"""Names of functions whose results have shapes that follow from those of their arguments."""


class OnMeta(TorchFunctionMode):
    """A mode in which simple operations on meta get their shape from the same operation on the CPU.

    All others are left to torch, and so are those whose tensors are on several devices: it refuses
    them in its own words.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call `func`, here or on the CPU."""
        named = dict(kwargs or {})
        if not _is_simple(func, args, named):
            return func(*args, **named)
        stand_ins = [_stand_in(one) for one in args]
        here = {name: "cpu" if name == "device" else value for name, value in named.items()}
        result = func(*stand_ins, **here)
        for own, stand_in in zip(args, stand_ins, strict=True):
            if result is stand_in:  # it was computed in place
                return own
        return torch.empty_like(result, device="meta")


def _is_simple(func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Return whether `func` is one of these operations, and all that it computes with on meta."""
    if getattr(func, "__name__", "").strip("_") not in _OPERATIONS.split():
        return False
    if any(isinstance(one, Tensor) for one in named.values()):
        return False
    joined = [each for one in args if isinstance(one, list | tuple) for each in one]
    tensors = [one for one in (*args, *joined) if isinstance(one, Tensor)]
    if (device := named.get("device")) is not None:
        return not tensors and torch.device(device).type == "meta"
    return bool(tensors) and all(one.is_meta and type(one) is Tensor for one in tensors)


def _stand_in(value: Any) -> Any:
    """Return `value` on the CPU, and so each of several tensors."""
    if isinstance(value, list | tuple):
        return [_stand_in(one) for one in value]
    return _on_cpu(value) if isinstance(value, Tensor) else value


def _on_cpu(tensor: Tensor) -> Tensor:
    """Return zeros of the same shape, strides and dtype as `tensor`."""
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return torch.zeros(max(1, last + 1), dtype=tensor.dtype).as_strided(
        tensor.shape, tensor.stride()
    )
