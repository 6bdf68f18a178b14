"""Ranges and marks for the profiler of CUDA, which raise where torch is built without it."""

from types import SimpleNamespace

import torch
from torch.cuda import nvtx


def ignore_ranges() -> None:
    """Let them do nothing where torch is built without CUDA: code with them runs on the CPU."""
    if torch.version.cuda is None:
        names = ("rangePushA", "rangePop", "rangeStartA", "rangeEnd", "markA")
        ignored = {name: lambda *_: 0 for name in names}
        nvtx._nvtx = SimpleNamespace(**ignored)  # type: ignore[attr-defined, assignment]
