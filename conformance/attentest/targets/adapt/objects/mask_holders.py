"""Masks that are objects: classes whose objects hold the one tensor that they are made with.

An object without a class that is known has the tensor in the attribute that its code reads.
"""

import ast
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Union, get_args, get_origin

from torch import Tensor, nn

from attentest.targets.signatures import constructor_arguments

_NO_HOLDERS = (Tensor, nn.Module, Enum, str, int, float, tuple, list, dict)


@dataclass(frozen=True)
class InAttribute:
    """The making of an object that has a mask in the attribute `name`."""

    name: str

    def __call__(self, mask: Any) -> Any:
        """Return the object of `mask`."""
        return types.SimpleNamespace(**{self.name: mask})

    def code(self, mask: str) -> str:
        """Return the same as code, for the expression `mask`."""
        return f'__import__("types").SimpleNamespace({self.name}={mask})'


Holder = type | InAttribute
"""A class of masks, or the attribute that an object has the mask in."""


def attributes_of(called: Callable[..., Any], own: str) -> InAttribute | None:
    """Return how the argument `own` of `called` holds a mask, None where it is a tensor.

    Its code reads one attribute of it by a name for masks, and nothing else but whether it is None.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(called)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    names: set[str] = set()
    loaded = compared = 0
    for one in ast.walk(tree):
        match one:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == own:
                names.add(attribute)
                compared += 1
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot()]) if name == own:
                compared += 1
            case ast.Name(id=name, ctx=ast.Load()) if name == own:
                loaded += 1
    is_held = len(names) == 1 and loaded == compared
    return InAttribute(*names) if is_held and "mask" in str(*names).lower() else None


def all_holders(
    parameters: Mapping[str, inspect.Parameter], thing: Any, parts: Iterable[Any] = ()
) -> Mapping[str, Holder]:
    """Return what makes the objects of masks, by the `parameters` of the call of `thing`.

    One of the `parts` that it is built with may read the attribute of an argument of that name.
    """
    found: dict[str, Holder] = {
        own: held
        for one in (*parts, thing)
        for own in parameters
        if "mask" in own.lower()
        if (held := attributes_of(getattr(one, "forward", one), own))
    }
    return {**found, **holders_of(parameters, thing)}


def mask_holders(called: Callable[..., Any]) -> Mapping[str, type]:
    """Return the classes of the arguments of `called` whose names and classes are those of masks.

    An annotation says the class. Its objects are made with one tensor, as in `Mask(keep)`.
    """
    return holders_of(constructor_arguments(called))


def holders_of(
    parameters: Mapping[str, inspect.Parameter], thing: Any = None
) -> Mapping[str, type]:
    """Return what :func:`mask_holders` does, by the `parameters` of a call of `thing`."""
    home = sys.modules.get(getattr(thing, "__module__", None) or "")
    names = dict(vars(home)) if home else {}
    return {
        own: kind
        for own, one in parameters.items()
        if "mask" in own.lower() and (kind := _class_of(_read(one.annotation, names)))
        if _holds_one(kind)
    }


def _read(annotation: Any, names: dict[str, Any]) -> Any:
    """Return what an annotation that is kept as text says, by the `names` of its file."""
    try:
        return eval(annotation, names) if isinstance(annotation, str) else annotation
    except Exception:  # it may be imported for type checkers alone
        return None


def held_masks(kind: type | None, masks: Iterable[Any]) -> Iterator[Any]:
    """Yield `masks` as objects of the class `kind` that its code makes, as they are for None."""
    for mask in masks:
        if kind is None:
            yield mask
            continue
        try:
            yield kind(mask)
        except Exception:  # code that a user wrote may raise anything, as for a mask of numbers
            continue


def _class_of(annotation: Any) -> type | None:
    """Return the class that an annotation names, also where the argument may be None."""
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [one for one in get_args(annotation) if one is not type(None)]
        annotation = kinds[0] if len(kinds) == 1 else None
    return annotation if inspect.isclass(annotation) else None


def _holds_one(kind: type) -> bool:
    """Say whether objects of a class of the user's code are made with one value, a tensor."""
    if issubclass(kind, _NO_HOLDERS) or kind.__module__.split(".")[0] in ("builtins", "torch"):
        return False
    try:
        arguments = constructor_arguments(kind).values()
    except (TypeError, ValueError):
        return False
    needed = [one for one in arguments if one.default is inspect.Parameter.empty]
    given = (inspect.Parameter.empty, Tensor)
    return len(needed) == 1 and needed[0].annotation in given and _is_plain(kind)


def _is_plain(kind: type) -> bool:
    """Say whether the name of a class is that of a module, where code can import it."""
    return kind.__qualname__ == kind.__name__ and "mask" in kind.__name__.lower()


def held_as(kind: Holder, mask: str, named: Callable[[type], str]) -> str:
    """Return the object of a mask as code, for the expression `mask`; `named` writes a class."""
    return kind.code(mask) if isinstance(kind, InAttribute) else f"{named(kind)}({mask})"
