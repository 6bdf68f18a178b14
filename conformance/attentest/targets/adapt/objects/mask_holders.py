"""Masks that are objects: classes whose objects hold the one tensor that they are made with."""

import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Union, get_args, get_origin

from torch import Tensor, nn

from attentest.targets.signatures import constructor_arguments

_NO_HOLDERS = (Tensor, nn.Module, Enum, str, int, float, tuple, list, dict)


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
