"""The shapes in the signatures of `harness` and `testing`, as types of jaxtyping for beartype.

A shape is written as `Annotated[Floats, "B L D"]`, so that the program itself needs neither
library. Arrays alone are checked, mypy checks everything else. The import hook has to be installed
before the modules are imported. It is not that of jaxtyping, which decorates a function inside a
function anew at every call of the outer one: a third of the time of the tests.
"""

import inspect
import sys
from collections.abc import Sequence
from dataclasses import is_dataclass
from functools import cache, cached_property, reduce, wraps
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from operator import or_
from types import FunctionType, ModuleType, NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np
from beartype import beartype
from jaxtyping import Float64, Shaped, config, jaxtyped

from attentest_spec.setting import Array, Floats

PARTS = ("attentest.harness", "attentest.testing")
"""The packages whose functions are checked."""

KINDS = {Array: Shaped, Floats: Float64}


@cache
def install() -> None:
    """Check every function of the packages; RuntimeError where a module is imported already."""
    if early := [name for name in sys.modules if name.startswith(_STARTS)]:
        raise RuntimeError(f"Imported before their shapes could be checked: {', '.join(early)}.")
    sys.meta_path.insert(0, Finder())


_STARTS = tuple(f"{part}." for part in PARTS)


class Finder(PathFinder):
    """Finds the modules of the packages."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(_STARTS):
            return None
        found = super().find_spec(fullname, path, target)
        if found and isinstance(found.loader, SourceFileLoader):
            found.loader = Loader(found.loader.name, found.loader.path)
        return found


class Loader(SourceFileLoader):
    """Runs a module, then has its functions and the fields of its data classes checked."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for name, thing in [*vars(module).items()]:
            if getattr(thing, "__module__", "") != module.__name__:
                continue
            if inspect.isclass(thing):
                _check_methods(thing)
            elif isinstance(thing, FunctionType):
                setattr(module, name, checked(thing))


def _check_methods(owner: type) -> None:
    for name, member in [*vars(owner).items()]:
        match member:
            case FunctionType():
                setattr(owner, name, checked(member))
            case property():
                setattr(owner, name, member.getter(checked(member.fget)))
            case cached_property():
                member.func = checked(member.func)
    if is_dataclass(owner):
        jaxtyped(owner, typechecker=_strict)


def checked(function: Any) -> Any:
    """Return `function` with the arrays in its signature checked at every call.

    It is decorated at the first of these, which takes milliseconds: in most tests none is checked.
    """
    types = [shaped(one) for one in getattr(function, "__annotations__", {}).values()]
    if all(one is Any for one in types):
        return function
    decorated = cache(lambda: jaxtyped(function, typechecker=_strict))

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        return (function if config.jaxtyping_disable else decorated())(*given, **named)

    return call


def _strict(function: Any) -> Any:
    types = {name: shaped(one) for name, one in function.__annotations__.items()}
    function.__annotations__ = types
    return beartype(function)


def shaped(annotation: Any) -> Any:
    """Return the annotation as one of arrays with their shapes; Any where it holds none."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        kind, shape = arguments
        return KINDS[kind][np.ndarray, shape]
    if origin in (Union, UnionType):
        members = [NoneType if one is NoneType else shaped(one) for one in arguments]
        return Any if Any in members else reduce(or_, members)
    if origin is tuple:
        members = [one if one is ... else shaped(one) for one in arguments]
        return tuple[tuple(members)]
    return annotation if annotation in KINDS else Any
