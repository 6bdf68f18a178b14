"""Calls that raise where torch is built without CUDA: moves to it, and ranges for its profiler."""

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.cuda import nvtx
from torch.overrides import _get_current_function_mode_stack

from attentest_spec.torch.meta import OnMeta
from attentest_spec.torch.settings import keep_functions

T = TypeVar("T", Tensor, nn.Module)

_MAKERS = """
arange as_tensor empty eye full full_like linspace logspace ones ones_like rand rand_like randint
randn randn_like randperm tensor tril_indices triu_indices zeros zeros_like
"""
"""Names of functions that make tensors on the device that they are given."""

_NEW = "new_empty new_full new_ones new_tensor new_zeros"
"""Names of methods that do so."""


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


def ignore_names() -> None:
    """Let the device "cuda" be where all else is, where torch is built without CUDA.

    It is patched once, and for code alone that names this device: tensors that are made there are
    made on the CPU, or on meta where a call is on that, and what is moved there stays.
    """
    if torch.version.cuda is not None or hasattr(Tensor.to, "__wrapped__"):
        return
    for owner, names in ((torch, _MAKERS), (Tensor, _NEW)):
        for name in names.split():
            setattr(owner, name, _made_here(getattr(owner, name)))
    for kind in (Tensor, nn.Module):
        kind.to = _staying(kind.to)  # type: ignore[method-assign]
    keep_functions()


def _made_here(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function `make`, with another device in the place of "cuda"."""

    @functools.wraps(make)
    def made(*args: Any, **named: Any) -> Any:
        if _is_cuda(named.get("device")):
            modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
            named["device"] = "meta" if any(isinstance(one, OnMeta) for one in modes) else "cpu"
        return make(*args, **named)

    return made


def _staying(move: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method `move`, which leaves a tensor or a module where it is for "cuda"."""

    @functools.wraps(move)
    def moved(own: Any, *args: Any, **named: Any) -> Any:
        if not any(map(_is_cuda, (*args, named.get("device")))):
            return move(own, *args, **named)
        rest = [one for one in args if not _is_cuda(one)]
        kept = {name: one for name, one in named.items() if not _is_cuda(one)}
        changes = any(isinstance(one, torch.dtype) for one in (*rest, *kept.values()))
        return move(own, *rest, **kept) if changes else own

    return moved


def _is_cuda(device: Any) -> bool:
    """Say whether a value names a device of CUDA."""
    named = isinstance(device, str | torch.device)
    return named and str(device).partition(":")[0] == "cuda"
