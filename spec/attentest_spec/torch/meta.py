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

_NUMBERS = "bool int float index item tolist"
"""Names of functions that read numbers, as code does that looks for unknown tokens: all are 0."""


class OnMeta(TorchFunctionMode):
    """A mode in which simple operations on meta get their shape from the same operation on the CPU.

    All others are left to torch, which computes some of them from tensors on two devices, as no
    accelerator does: these raise RuntimeError. Numbers that are read are zeros. Code that asks for
    CUDA by name, as by `x.is_cuda` and `x.cuda()`, gets meta as that.
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
        if func == _IS_CUDA:
            return args[0].device.type == "meta"
        if func is Tensor.cuda:
            return args[0].to("meta")
        if not _is_simple(func, args, named):
            _demand_one_device(func, args, named)
            return func(*args, **named)
        stand_ins = [_stand_in(one) for one in args]
        here = {name: "cpu" if name == "device" else value for name, value in named.items()}
        result = func(*stand_ins, **here)
        for own, stand_in in zip(args, stand_ins, strict=True):
            if result is stand_in:  # it was computed in place
                return own
        return torch.empty_like(result, device="meta") if isinstance(result, Tensor) else result


_IS_CUDA: Any = Tensor.is_cuda.__get__  # type: ignore[attr-defined]  # the stubs have a bool
"""The function that answers whether a tensor lies on CUDA."""

_BETWEEN_DEVICES = """
to type_as copy setitem set expand_as view_as reshape_as broadcast_tensors is_same_size get
"""
"""Names of functions that take tensors on two devices: they move them, or ask for a shape."""


def _demand_one_device(func: Callable[..., Any], args: Sequence[Any], named: Any) -> None:
    """Raise RuntimeError for tensors on two devices where an accelerator refuses them.

    Single numbers may lie on the CPU, and so may the indices of a tensor that lies elsewhere.
    """
    name = getattr(func, "__name__", "").strip("_")
    if name in _BETWEEN_DEVICES.split():
        return
    given = [*args, *named.values()]
    every = [*given, *(each for one in given if isinstance(one, list | tuple) for each in one)]
    tensors = [one for one in every if isinstance(one, Tensor)]
    if name == "getitem" and tensors[:1] and tensors[0].is_meta:
        return
    if len({one.is_meta for one in tensors if one.dim() or one.is_meta}) > 1:
        raise RuntimeError(
            f"{name} of tensors on two devices: some are on device cpu, some on meta"
        )


def _is_simple(func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Return whether `func` is one of these operations, and all that it computes with on meta."""
    if getattr(func, "__name__", "").strip("_") not in (*_OPERATIONS.split(), *_NUMBERS.split()):
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
