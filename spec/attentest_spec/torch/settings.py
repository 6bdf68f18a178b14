"""Torch's global settings and functions: changes are noticed and undone."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import _compile, nn

_SET: Mapping[str, Callable[[Any], Any]] = {
    "default dtype": torch.set_default_dtype,
    "grad mode": torch.set_grad_enabled,
    "threads": torch.set_num_threads,
    "deterministic": torch.use_deterministic_algorithms,
}

_OWNERS: Mapping[str, Any] = {
    "torch": torch,
    "torch.nn.functional": nn.functional,
    "torch.Tensor": torch.Tensor,
    "torch.nn.Module": nn.Module,
}
"""The owners of the functions that most code calls."""


def settings() -> dict[str, Any]:
    """Return torch's global settings by name."""
    return {
        "default dtype": torch.get_default_dtype(),
        "grad mode": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


@contextmanager
def watch(changed: set[str]) -> Iterator[None]:
    """Set back every setting and function that the block changes; add its name to `changed`."""
    _functions()
    before = settings()
    try:
        yield
    finally:
        for name, value in settings().items():
            if value != before[name]:
                changed.add(name)
                _SET[name](before[name])
        changed |= set(_restore_functions())


@cache
def _functions() -> dict[str, tuple[tuple[str, ...], list[Any]]]:
    """Return the functions of each owner as they were at the first call."""
    found = {}
    for place, owner in _OWNERS.items():
        own = {name: value for name, value in vars(owner).items() if callable(value)}
        found[place] = tuple(own), list(own.values())
    return found


def keep_functions() -> None:
    """Let the functions of torch be those of now, whatever they were at the first call."""
    _functions.cache_clear()
    _seen.clear()


_seen: list[list[Any]] = []
"""All attributes of the owners, as they were when the functions were compared one by one."""


def _attributes() -> list[list[Any]]:
    """Return all values, and the last names: lists are compared faster than dictionaries.

    A new name comes last; where another one than the last is gone, so is its value.
    """
    every = [vars(owner) for owner in _OWNERS.values()]
    return [*([*one.values()] for one in every), [next(reversed(one)) for one in every]]


def _unchanged() -> bool:
    """Say whether the owners have the attributes that they had then: by far the usual case."""
    try:
        return _attributes() == _seen
    except Exception:  # a value that somebody put there may refuse to be compared
        return False


def _is_of_torch(now: Any, before: Any) -> bool:
    """Say whether torch itself has wrapped a function, as its compiler does when it is imported.

    Code that uses a library may be the first to import that, as einops 0.8.0 does in its first
    operation.
    """
    code = getattr(now, "__code__", None)
    wraps = getattr(now, "__wrapped__", None) is before
    return wraps and code is not None and code.co_filename == _compile.__file__


def _restore_functions() -> Iterator[str]:
    """Set torch's replaced functions back; yield the name of each."""
    if _unchanged():
        return
    for place, (names, functions) in _functions().items():
        owner = _OWNERS[place]
        if [*map(vars(owner).get, names)] != functions:
            for number, (name, function) in enumerate(zip(names, functions, strict=True)):
                now = vars(owner).get(name)
                if now is function:
                    continue
                if _is_of_torch(now, function):
                    functions[number] = now
                    continue
                setattr(owner, name, function)
                yield f"function {place}.{name}"
    # A method that the class inherits is patched by an attribute of its own.
    known = _functions()["torch.Tensor"][0]
    for name, value in [*vars(torch.Tensor).items()]:
        if callable(value) and name not in known:
            delattr(torch.Tensor, name)
            yield f"function torch.Tensor.{name}"
    _seen[:] = _attributes()
