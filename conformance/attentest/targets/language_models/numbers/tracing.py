"""Traces of a call: every number that it computes, to look up those of a formula among them."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from attentest.analysis.lines.recording import Place, is_users
from attentest.analysis.lines.torch_recording import place_of
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


@dataclass(eq=False)
class Result:
    """The numbers of one operation, sorted, and the user's line that it is called in.

    `known` are numbers that a formula gives, too, `first` those that no earlier operation gives.
    """

    values: Floats
    place: Place | None
    known: bool = False
    first: bool = False


class Trace(OperationMode):
    """The results of all operations of a call, without their shapes and orders.

    A formula is looked up by its numbers: sorted, so that any layout of theirs is found.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._results: list[Result] = []
        self._found: dict[int, list[Result]] = defaultdict(list)
        self._sums: dict[int, Floats] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call `func`, and keep the numbers of its result."""
        result = func(*args, **(kwargs or {}))
        for one in tree_leaves(result):
            if isinstance(one, Tensor) and one.is_floating_point() and one.numel() > 1:
                values = one.detach().double().reshape(-1).numpy()
                self._results.append(Result(np.sort(values), _line()))
                self._found[len(values)].append(self._results[-1])
        return result

    def holds(self, values: Floats, *, known: bool = True) -> bool:
        """Say whether a result has these numbers, in whatever order.

        They are the formula's, unless they are not `known` as that.
        """
        size = values.size
        if size not in self._found:
            return False
        if size not in self._sums:
            self._sums[size] = np.array([one.values.sum() for one in self._found[size]])
        room = NEAR * float(np.abs(values).max())
        near = np.flatnonzero(np.abs(self._sums[size] - values.sum()) <= room * size)
        if not len(near):  # most formulas: nothing has to be sorted
            return False
        own = np.sort(values, axis=None)
        equal = [one for one in (self._found[size][n] for n in near) if _near(one, own, room)]
        for number, one in enumerate(equal if known else ()):
            one.known, one.first = True, number == 0
        return bool(equal)

    @property
    def first_unknown(self) -> Place | None:
        """The line of the first operation, after all that are known, with numbers of its own.

        None where nothing is known. Masks and other constants have few numbers, and are no step.
        """
        firsts = [number for number, one in enumerate(self._results) if one.first]
        for one in self._results[firsts[-1] + 1 :] if firsts else ():
            if one.place and not one.known and len(np.unique(one.values)) > _FEW:
                return one.place
        return None


_FEW = 3
"""The most different numbers that a mask has."""


def _near(one: Result, values: Floats, room: float) -> bool:
    return bool(np.abs(one.values - values).max() <= room)


def _line() -> Place | None:
    """Return the innermost line of the user's code that is running."""
    frame = sys._getframe(2)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else place_of(frame)


def traced(call: Callable[[], Any]) -> tuple[Trace, Any]:
    """Return the trace of `call`, in double precision throughout, and its result."""
    with widened(), torch.enable_grad(), Trace() as trace:  # gradients keep torch from fused layers
        return trace, call()
