"""Traces of a call: every number that it computes, to look up those of a formula among them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from attentest.targets.adapt.probing import undisturbed
from attentest_spec.setting import Floats
from attentest_spec.torch.flops import OperationMode

NEAR = 1e-9
"""Numbers are equal where they differ by less than this part of the largest of them."""

_WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}


class _Widened(TorchFunctionMode):
    """Computes in double precision whatever code asks for in single precision.

    What a model computes is read without the rounding that hides it; rounding is judged later.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call `func` with double precision in the place of single precision."""
        if func is Tensor.float:
            return args[0].double()
        wider = tree_map(_wider, (tuple(args), kwargs or {}))
        return func(*wider[0], **wider[1])


def _wider(value: Any) -> Any:
    return _WIDER.get(value, value) if isinstance(value, torch.dtype) else value


@contextmanager
def widened() -> Iterator[None]:
    """Compute in double precision, whatever precision code asks for."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with undisturbed(), _Widened():
            yield
    finally:
        torch.set_default_dtype(before)


class Trace(OperationMode):
    """The results of all operations of a call, without their shapes and orders.

    A formula is looked up by its numbers: sorted, so that any layout of theirs is found.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found: dict[int, list[Floats]] = defaultdict(list)
        self._sums: dict[int, Floats] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call `func`, and keep the numbers of its result."""
        result = func(*args, **(kwargs or {}))
        for one in tree_leaves(result):
            if isinstance(one, Tensor) and one.is_floating_point() and one.numel() > 1:
                values = one.detach().double().reshape(-1).numpy()
                self._found[len(values)].append(np.sort(values))
        return result

    def holds(self, values: Floats) -> bool:
        """Say whether a result has these numbers, in whatever order."""
        size = values.size
        if size not in self._found:
            return False
        if size not in self._sums:
            self._sums[size] = np.array([one.sum() for one in self._found[size]])
        room = NEAR * float(np.abs(values).max())
        near = np.flatnonzero(np.abs(self._sums[size] - values.sum()) <= room * size)
        if not len(near):  # most formulas: nothing has to be sorted
            return False
        own = np.sort(values, axis=None)
        return any(np.abs(self._found[size][n] - own).max() <= room for n in near)


def traced(call: Callable[[], Any]) -> tuple[Trace, Any]:
    """Return the trace of `call`, in double precision throughout, and its result."""
    with widened(), torch.enable_grad(), Trace() as trace:  # gradients keep torch from fused layers
        return trace, call()
