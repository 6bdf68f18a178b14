"""Objects that an object of NumPy holds: each is called as a module while the whole is called."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from torch import nn

from attentest_spec.torch.array_places import objects_held
from attentest_spec.torch.array_reads import CALLS
from attentest_spec.torch.arrays import by_tensors, on_arrays

_MODULE = "_module_of_tensors"
"""The name under which an object holds its module during a call."""


class Part(nn.Module):
    """The parameters of an object that another one holds; during a call of that it is called."""

    def forward(self, *args: Any, **named: Any) -> Any:
        """Call the object with arrays."""
        return on_arrays(vars(self)["call"])(*args, **named)


def register(module: nn.Module, path: Sequence[str], value: nn.Parameter) -> None:
    """Register a parameter under its path, in modules of the objects on the way."""
    *within, name = path
    for one in within:
        if one not in module._modules:
            module.add_module(one, Part())
        module = module.get_submodule(one)
    module.register_parameter(name, value)


def called_method(kind: type) -> Callable[..., Any]:
    """Return the method by which objects of a class are called; AttributeError for none.

    A `__call__` that gives all its arguments to `forward` is that one, as in a class of modules.
    """
    found = next((vars(one)["__call__"] for one in kind.__mro__ if "__call__" in vars(one)), None)
    own: Any = kind
    method: Callable[..., Any] = own.forward if not found or _gives_all(found) else found
    return method


def _gives_all(method: Any) -> bool:
    """Say whether a method is `return self.forward(*args, **kwargs)`."""
    if not inspect.isfunction(method) or method.__code__.co_names != ("forward",):
        return False
    _, *rest = inspect.signature(method).parameters.values()
    return bool(rest) and all(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in rest)


def parts_of(whole: nn.Module, made: Any) -> list[tuple[Part, Any]]:
    """Return the modules that hold the parameters of the objects in `made`, with the objects."""
    modules = dict(whole.named_modules())
    held = ((modules.get(path), owner) for path, owner in objects_held(made))
    return [
        (module, owner)
        for module, owner in held
        if isinstance(module, Part) and _is_called(owner) and not _has_slots(type(owner))
    ]


def _is_called(owner: Any) -> bool:
    return any(name in vars(one) for one in type(owner).__mro__ for name in CALLS)


def _has_slots(kind: type) -> bool:
    return any("__slots__" in vars(one) for one in kind.__mro__)


@contextmanager
def called_as_modules(parts: Sequence[tuple[Part, Any]]) -> Iterator[None]:
    """Have each object called by its module, so that whoever watches the modules sees the call."""
    kinds: list[Any] = [type(owner) for _, owner in parts]
    for (module, owner), kind in zip(parts, kinds, strict=True):
        vars(module)["call"] = partial(called_method(kind), owner)
        vars(owner)[_MODULE] = module
        object.__setattr__(owner, "__class__", _by_module(kind))  # of frozen data classes, too
    try:
        yield
    finally:
        for (module, owner), kind in zip(parts, kinds, strict=True):
            object.__setattr__(owner, "__class__", kind)
            del vars(owner)[_MODULE], vars(module)["call"]


@cache
def _by_module(kind: type) -> type:
    """Return a class of objects of `kind` whose modules call them."""

    def call(self: Any, *args: Any, **named: Any) -> Any:
        return by_tensors(vars(self)[_MODULE], args, named)

    return type(kind.__name__, (kind,), {called_method(kind).__name__: call})
