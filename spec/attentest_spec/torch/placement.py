"""Arrays and their tensors in other memory, as on a GPU: what a call changes is copied back."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attentest_spec.contract import Output
from attentest_spec.setting import Array
from attentest_spec.torch.values import to_array, to_output, to_tensor

_OUTPUTS = 8
"""The number of outputs that later calls may write into, and are looked at again."""


@dataclass
class _Pair:
    """An array, and the tensor in other memory that had its numbers."""

    array: Array
    tensor: Tensor

    def __post_init__(self) -> None:
        self._before = to_array(self.tensor).tobytes()

    def copy_back(self) -> None:
        """Write into the array where the tensor has changed."""
        now = to_array(self.tensor)
        if now.tobytes() != self._before and self.array.flags.writeable:
            np.copyto(self.array, now)
            self._before = now.tobytes()


class Placement:
    """Places the inputs of calls on a device, and their outputs into arrays.

    On the CPU a tensor shares the memory of its array. Elsewhere both are kept equal: code that
    writes into its input, or into an output that it returned earlier, is noticed there as well.
    """

    def __init__(self, device: str) -> None:
        """Begin without any array."""
        self._device = torch.device(device)
        self._inputs: list[_Pair] = []
        self._outputs: deque[_Pair] = deque(maxlen=_OUTPUTS)

    def place(self, array: Array) -> Tensor:
        """Return `array` (any shape) as a tensor of its strides on the device."""
        tensor = to_tensor(array)
        if not is_copied(self._device):
            return tensor.to(self._device)
        form = (tensor.shape, tensor.stride() if not _overlaps(tensor) else _plain(tensor))
        placed = torch.empty_strided(*form, dtype=tensor.dtype, device=self._device).copy_(tensor)
        self._inputs.append(_Pair(array, placed))
        return placed

    def output(self, result: Any, device: str) -> Output:
        """Return `result` as arrays, see :func:`to_output`, after a call has ended."""
        self.copy_back()
        found = to_output(result, device)
        if is_copied(self._device):
            self._outputs.extend(_pairs(result, found))
        return found

    def copy_back(self) -> None:
        """Copy the tensors of inputs and earlier outputs into their arrays."""
        for pair in (*self._inputs, *self._outputs):
            pair.copy_back()
        self._inputs.clear()


def is_copied(device: torch.device) -> bool:
    """Return whether a tensor on `device` has numbers, and not in the memory of an array."""
    return device.type not in ("cpu", "meta")


def _overlaps(tensor: Tensor) -> bool:
    """Return whether several elements are one place in memory, as after a broadcast."""
    return any(
        stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )


def _plain(tensor: Tensor) -> tuple[int, ...]:
    """Return the strides of a tensor of this shape that is contiguous."""
    return torch.empty(tensor.shape, device="meta").stride()


def _pairs(result: Any, found: Any) -> Iterator[_Pair]:
    """Yield the arrays of an output, each with the tensor that it is a copy of."""
    if isinstance(result, tuple):
        for one, array in zip(result, found, strict=True):
            yield from _pairs(one, array)
    elif isinstance(result, Tensor):
        yield _Pair(found, result)


@contextmanager
def without_tf32(device: str) -> Iterator[None]:
    """Compute convolutions on a GPU in float32: by default torch takes 10 of its 23 bits."""
    if not is_copied(torch.device(device)):
        yield
        return
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


def random_state(device: str) -> bytes:
    """Return the state of torch's generators of random numbers: the CPU's and that of `device`."""
    kind = torch.device(device).type
    own = getattr(getattr(torch, kind, None), "get_rng_state", None)
    states = [torch.get_rng_state(), *([own()] if own and kind != "cpu" else [])]
    return b"".join(state.numpy().tobytes() for state in states)
