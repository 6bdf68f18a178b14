"""Constants of code: the numbers that its modules hold and its functions name."""

import inspect
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np
import torch
from torch import nn

MOST = 60
"""Limit of the constants that are tried in one place."""

EPSILONS = (1e-5, 1e-6, 1e-8, 1e-12, float(np.finfo(np.float64).eps), 0.0)
BASES = (10000.0, 500000.0, 1000000.0)


def constants(model: nn.Module, thing: Callable[..., Any]) -> list[float]:
    """Return the numbers that modules of `model` and functions beside `thing` hold, sorted."""
    found = {float(one) for one in _numbers(model, thing) if np.isfinite(float(one))}
    return sorted(found)


def _numbers(model: nn.Module, thing: Callable[..., Any]) -> Iterator[float]:
    for module in model.modules():
        for value in vars(module).values():
            yield from _of_value(value)
    home = sys.modules.get(thing.__module__)
    for value in list(vars(home).values()) if home else []:
        if getattr(value, "__module__", None) == thing.__module__:
            yield from _of_code(value)
        yield from _of_value(value)


def _of_value(value: Any) -> Iterator[float]:
    """Yield a number, or those that a plain object of settings holds, with its dictionaries."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, dict):
        yield from (one for one in value.values() if type(one) in (int, float))
    elif hasattr(value, "__dict__") and not isinstance(value, (nn.Module, torch.Tensor, type)):
        for one in vars(value).values():
            if type(one) in (int, float, dict):
                yield from _of_value(one)


def _of_code(value: Any) -> Iterator[float]:
    """Yield the numbers in the code of a function, or of the methods of a class."""
    if inspect.isclass(value):
        for one in vars(value).values():
            if not inspect.isclass(one) or _is_inside(one, value):
                yield from _of_code(getattr(one, "__func__", one))
            yield from _of_value(one)
    elif inspect.isfunction(value):
        yield from _of_text(value.__code__)
        for one in [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]:
            yield from _of_value(one)


def _is_inside(one: type, other: type) -> bool:
    """Say whether a class is defined in another: two may also hold each other as attributes."""
    return one.__qualname__.startswith(f"{other.__qualname__}.")


def _of_text(code: CodeType) -> Iterator[float]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _of_text(one)
        elif type(one) in (int, float):
            yield one
