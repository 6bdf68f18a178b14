"""Traces of an argument in what is built: numbers and buffers that modules hold because of it."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from attentest_spec import Sizes

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_DEPTH = 3


def leaves_no_trace(
    made: Callable[[Sizes], Any], other: Callable[[Sizes], Any], sizes: Sizes
) -> bool:
    """Say whether the layers of what is made in two ways hold the same numbers and buffers.

    Layers are modules in a numbered list. What is made without any says nothing.
    """
    one, two = (dict(build(sizes).named_modules()) for build in (made, other))
    numbered = [path for path in one if any(part.isdigit() for part in path.split("."))]
    return (
        one.keys() == two.keys()
        and bool(numbered)
        and all(_held(one[path]) == _held(two[path]) for path in numbered)
    )


def _held(module: nn.Module) -> dict[str, Any]:
    """Return what a module holds besides its parameters and its modules, to be compared."""
    own = {name: _value(one, _DEPTH) for name, one in vars(module).items() if name[0] != "_"}
    return own | {name: _value(one, _DEPTH) for name, one in module.named_buffers(recurse=False)}


def _value(value: Any, depth: int) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Tensor):
        return tuple(value.shape), value.double().nan_to_num().tolist()
    if depth == 0:
        return type(value)
    if isinstance(value, Mapping):
        return {str(name): _value(one, depth - 1) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_value(one, depth - 1) for one in value]
    cells = getattr(value, "__closure__", None) or ()
    held = [_value(one.cell_contents, depth - 1) for one in cells]
    if not isinstance(value, type | nn.Module) and hasattr(value, "__dict__"):
        held.append(_value(vars(value), depth - 1))
    return getattr(value, "__qualname__", type(value).__qualname__), held
