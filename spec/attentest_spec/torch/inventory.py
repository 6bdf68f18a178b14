"""Listings of the modules and tensors that a torch module holds, in plain containers too."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn


def modules(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield `module` and all modules inside it once each, those in plain containers too."""
    found: dict[int, tuple[str, nn.Module]] = {}
    waiting = [("", module)]
    while waiting:
        start, root = waiting.pop()
        for own, inner in root.named_modules(prefix=start):
            if id(inner) in found:
                continue
            found[id(inner)] = (own, inner)
            waiting += [
                (place, leaf)
                for key, value in _plain(inner)
                for place, leaf in _leaves(f"{own}.{key}".lstrip("."), value)
                if isinstance(leaf, nn.Module)
            ]
    yield from found.values()


def tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors, of any shape, that `module` holds as plain attributes, with their names.

    Torch does not look for them there.
    """
    for key, value in _plain(module):
        yield from _held(key, value)


def _plain(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Return the attributes of `module` that torch has not registered."""
    registered = ("_parameters", "_buffers", "_modules")
    return ((key, value) for key, value in vars(module).items() if key not in registered)


def _held(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in `value`, which may be a container, of modules too."""
    for path, leaf in _leaves(name, value):
        if isinstance(leaf, Tensor):
            yield path, leaf
        elif isinstance(leaf, nn.Module):
            yield from ((f"{path}.{key}", inner) for key, inner in leaf.state_dict().items())


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested containers with their paths."""
    if not isinstance(value, list | tuple | dict):
        yield name, value
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _leaves(f"{name}.{key}", inner)


def follow(module: nn.Module, moved: Mapping[int, nn.Parameter]) -> None:
    """Put the `moved` parameters in the place of those with their ids in lists and dictionaries.

    A move between real devices leaves each parameter the object that it is; one to meta does not.
    """
    for _, inner in modules(module):
        for _, value in _plain(inner):
            _replace(value, moved)


def _replace(held: Any, moved: Mapping[int, nn.Parameter]) -> None:
    """Replace the values of nested lists and dictionaries by those with their ids."""
    if isinstance(held, list | dict):
        for key, value in list(held.items() if isinstance(held, dict) else enumerate(held)):
            if isinstance(value, nn.Parameter) and id(value) in moved:
                held[key] = moved[id(value)]
            else:
                _replace(value, moved)


def facts(value: Tensor) -> dict[str, Any]:
    """Return the shape, the dtype and the device of `value`."""
    return {
        "shape": tuple(value.shape),
        "dtype": str(value.dtype).removeprefix("torch."),
        "device": value.device.type,
    }


def inventory(module: nn.Module) -> dict[str, dict[str, Any]]:
    """List parameters, buffers, loose tensors, modes and the saved state of a module."""
    return {
        "parameters": {
            name: {**facts(value), "trained": value.requires_grad}
            for name, value in module.named_parameters()
        },
        "buffers": {name: facts(value) for name, value in module.named_buffers()},
        "loose": {
            f"{name}.{key}".lstrip("."): facts(value)
            for name, inner in module.named_modules()
            for key, value in tensors(inner)
        },
        "modes": {name: inner.training for name, inner in modules(module)},
        "state": {name: tuple(value.shape) for name, value in module.state_dict().items()},
    }
