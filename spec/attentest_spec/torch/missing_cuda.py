"""Calls that raise where torch is built without CUDA: moves to it, and ranges for its profiler."""

from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.cuda import nvtx

T = TypeVar("T", Tensor, nn.Module)


def ignore_moves() -> None:
    """Let `x.cuda()` return `x` where torch is built without CUDA, as there is one device."""

    def stay(moved: T, *_: Any, **__: Any) -> T:
        return moved

    if torch.version.cuda is None:
        Tensor.cuda = nn.Module.cuda = stay  # type: ignore[method-assign, assignment]


def ignore_ranges() -> None:
    """Let them do nothing where torch is built without CUDA: code with them runs on the CPU."""
    if torch.version.cuda is None:
        names = ("rangePushA", "rangePop", "rangeStartA", "rangeEnd", "markA")
        ignored = {name: lambda *_: 0 for name in names}
        nvtx._nvtx = SimpleNamespace(**ignored)  # type: ignore[attr-defined, assignment]
