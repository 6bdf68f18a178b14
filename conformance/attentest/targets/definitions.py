"""The functions and classes that a module itself defines, without what decorates them."""

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def definitions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the public classes and functions that `module` defines, undecorated, by their names."""
    for name, thing in list(vars(module).items()):
        plain = undecorated(thing)
        written = inspect.isclass(plain) or inspect.isfunction(plain)
        if written and not name.startswith("_") and plain.__module__ == module.__name__:
            yield name, plain


def undecorated(thing: Any) -> Any:
    """Return the function that `thing` is made of, by `jax.jit` for instance; or `thing` itself."""
    if not callable(thing) or inspect.isclass(thing):
        return thing
    try:
        return inspect.unwrap(thing)
    except Exception:  # an object that has every attribute, such as `unittest.mock.call`
        return thing
