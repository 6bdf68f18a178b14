"""Gradients of a number, also where code computes layers again in the backward pass."""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_OVERWRITTEN = "modified by an inplace operation"
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)')
_TORCH = str(Path(torch.__file__).parent)


class Overwritten(RuntimeError):
    """A number is overwritten that its gradient needs; `place` is the line that computes it."""

    def __init__(self, place: str) -> None:
        line = place.rpartition("/")[2].partition(" in ")[0]
        super().__init__(f"what {line} computes is overwritten in place, and its gradient needs it")
        self.place = place


def output_of(result: Any) -> Tensor:
    """Return the output of a call, in its shape: a rate is often a plain number, a scalar then."""
    return torch.as_tensor(result[0] if isinstance(result, tuple) else result)


@contextmanager
def naming_overwritten(call: Callable[[], Tensor]) -> Iterator[None]:
    """Raise Overwritten for a gradient of `call` that torch refuses, where its line is found."""
    try:
        yield
    except RuntimeError as failure:
        if _OVERWRITTEN not in str(failure):
            raise
        place = _place_of(call)
        if not place:
            raise
        raise Overwritten(place) from failure


def _place_of(call: Callable[[], Tensor]) -> str:
    """Return the line of a user whose result is overwritten, as torch reports it, "" for none."""
    anomaly = torch.autograd.set_detect_anomaly(True, check_nan=False)
    with warnings.catch_warnings(record=True) as said, anomaly, suppress(RuntimeError):
        warnings.simplefilter("always")
        call().sum().backward()  # type: ignore[no-untyped-call]
    found = [one for each in said for one in _FRAME.finditer(str(each.message))]
    own = (_TORCH, str(Path(__file__).parent))
    users = [one for one in found if not one["file"].startswith(own)]
    return f"{users[-1]['file']}:{users[-1]['line']} in {users[-1]['name']}" if users else ""


def gradients(total: Tensor, wanted: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """Return the gradients of `total`, a number, in the shapes of the tensors `wanted`.

    A gradient is None for what `total` does not depend on.
    Reentrant checkpoints of torch refuse `torch.autograd.grad`: gradients are accumulated then, in
    tensors without any before.
    """
    try:
        # The second way needs the graph that the first one began with.
        return torch.autograd.grad(total, wanted, retain_graph=True, allow_unused=True)
    except RuntimeError as failure:
        if "checkpoint" not in str(failure):
            raise
    held = [one.grad for one in wanted]
    try:
        for one in wanted:
            one.grad = None
        torch.autograd.backward(total)
        return [one.grad for one in wanted]
    finally:
        for one, before in zip(wanted, held, strict=True):
            one.grad = before
