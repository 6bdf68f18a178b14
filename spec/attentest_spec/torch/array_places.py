"""Places of the arrays of real numbers that a call of an object reads."""

import copy
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from attentest_spec.contract import Unsupported
from attentest_spec.torch.array_reads import (
    BACKWARD,
    codes_of,
    functions_called,
    is_read,
    methods_of,
    names_read,
    names_written,
)

Path = tuple[str, ...]
"""The names by which something is reached from an object."""


@dataclass(frozen=True)
class ArrayPlace:
    """The place of an array in an object: `key` of `owner`, reached from it by the names `path`.

    In a tuple there, it is the item `number`: another tuple takes its place.
    """

    path: Path
    owner: Any
    key: Any
    number: int | None = None

    @property
    def array(self) -> Any:
        """The array that lies there."""
        held = self._held()
        return held if self.number is None else held[self.number]

    def _held(self) -> Any:
        return self.owner[self.key] if is_collection(self.owner) else getattr(self.owner, self.key)

    def put(self, value: Any) -> None:
        """Put another array there; frozen data classes are no exception."""
        if self.number is not None:
            kind, items = type(self._held()), list(self._held())
            items[self.number] = value
            value = kind(*items) if hasattr(kind, "_fields") else tuple(items)
        if is_collection(self.owner):
            self.owner[self.key] = value
        else:
            object.__setattr__(self.owner, self.key, value)


def put_all(places: Sequence[ArrayPlace], arrays: Sequence[Any]) -> None:
    """Put an array in each place."""
    for place, array in zip(places, arrays, strict=True):
        place.put(array)


def parameter_places(made: Any, called: Callable[..., Any], tables: set[Path]) -> list[ArrayPlace]:
    """Return the places of the arrays in an object that the code of `called` reads, but `tables`.

    Raises Unsupported for an object with arrays of which none is read by its name.
    """
    places = array_places(made, called)
    held = (one for each in objects_in(made) for _, one in items_of(each))
    if not places and any(map(_is_real, held)):
        raise Unsupported(
            f"{type(made).__name__} holds arrays, and the code of a call reads none of them by "
            f"its name"
        )
    _demand_read(made, _names_of(_kinds_in(made), called).read)
    return [one for one in places if one.path not in tables]


_OWN_NAMES = re.compile(r"(weights?|w|bias|b|gamma|beta)(\d*|_?[qko])", re.IGNORECASE)
"""Names of parameters: no gradient and no moment of an optimiser has one of them."""


def _demand_read(made: Any, read: Collection[str]) -> None:
    """Raise Unsupported for an array with the name of a parameter that is not `read`."""
    for owner in objects_in(made):
        for name, one in items_of(owner):
            if _is_real(one) and _OWN_NAMES.fullmatch(name) and not is_read(name, read):
                raise Unsupported(
                    f"{type(owner).__name__} holds the array {name}, and the code of a call of "
                    f"{type(made).__name__} does not read it"
                )


def array_places(made: Any, called: Callable[..., Any]) -> list[ArrayPlace]:
    """Return the places of all arrays of real numbers in an object that its call reads.

    What the call itself writes, such as a cache, is none.
    """
    names = _names_of(_kinds_in(made), called)
    return list(_within(made, (), names, {id(made)}))


def _kinds_in(made: Any) -> frozenset[type]:
    return frozenset(type(one) for one in objects_in(made))


@dataclass(frozen=True)
class _Names:
    """The names that a call reads of all objects, and those that it writes of each class."""

    read: set[str]
    written: Mapping[type, set[str]]

    def count(self, owner: Any, key: Any) -> bool:
        """Say whether what `owner` holds as `key` may hold parameters."""
        if is_collection(owner) or _is_variable(owner):
            return True
        return is_read(key, self.read) and key not in self.written.get(type(owner), ())


@cache  # every call of a module asks for its places
def _names_of(kinds: frozenset[type], called: Callable[..., Any]) -> _Names:
    """Return the names of what a call of objects of some classes reads and writes."""
    functions = functions_called(kinds, called)
    return _Names(names_read(functions), {one: names_written(one, functions) for one in kinds})


def _within(owner: Any, path: Path, read: _Names, seen: set[int]) -> Iterator[ArrayPlace]:
    for key, value in items_of(owner):
        if not read.count(owner, key):
            continue
        inside = path if _is_variable(owner) else (*path, str(key).replace(".", "_"))
        if _is_real(value):
            yield ArrayPlace(inside, owner, key)
        elif isinstance(value, tuple):
            for number, (name, one) in enumerate(_named(value)):
                if _is_real(one):
                    yield ArrayPlace((*inside, name), owner, key, number)
                elif _holds(one) and id(one) not in seen:
                    yield from _within(one, (*inside, name), read, seen | {id(one)})
        elif _holds(value) and id(value) not in seen:
            yield from _within(value, inside, read, seen | {id(value)})


def _named(value: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    names = getattr(value, "_fields", range(len(value)))
    return zip(map(str, names), value, strict=True)


def items_of(owner: Any) -> list[tuple[Any, Any]]:
    """Return what an object or a collection holds, by names or by numbers."""
    if isinstance(owner, dict):
        return list(owner.items())
    if isinstance(owner, list | tuple):
        return list(enumerate(owner))
    slots = {name for one in type(owner).__mro__ for name in _slots(one)}
    held = {name: getattr(owner, name) for name in sorted(slots) if hasattr(owner, name)}
    return [*held.items(), *getattr(owner, "__dict__", {}).items()]


def _slots(kind: type) -> tuple[str, ...]:
    own = vars(kind).get("__slots__", ())
    return (own,) if isinstance(own, str) else tuple(own)


def is_collection(owner: Any) -> bool:
    """Say whether what an object holds has keys or numbers, and no names."""
    return isinstance(owner, dict | list | tuple)


def _is_variable(owner: Any) -> bool:
    """Say whether an object is the variable of a library around one array."""
    return hasattr(type(owner), "get_raw_value")


def _is_real(value: Any) -> bool:
    """Say whether a value is an array of real numbers with an axis."""
    is_array = isinstance(value, np.ndarray) or _is_of_jax(value)
    return is_array and np.ndim(value) > 0 and np.issubdtype(np.asarray(value).dtype, np.floating)


def array_of(result: Any) -> Any:
    """Return the array that a result holds as `data`, as in engines of gradients, or the result."""
    held = dict(items_of(result)).get("data") if _holds(result) else None
    return held if isinstance(held, np.ndarray) and not is_collection(result) else result


def _is_of_jax(value: Any) -> bool:
    """Say whether a value is an array of JAX; a key of its random numbers is none."""
    held = getattr(value, "dtype", None)
    return type(value).__module__.startswith("jax") and isinstance(held, np.dtype)


def _holds(value: Any) -> bool:
    """Say whether a value is a collection, or an object of a class that somebody wrote."""
    if is_collection(value):
        return True
    root = type(value).__module__.partition(".")[0]
    written = root not in ("builtins", "numpy", "jax", "jaxlib", "torch")
    has_state = hasattr(value, "__dict__") or hasattr(type(value), "__slots__")
    return written and has_state and not isinstance(value, type | FunctionType)


def objects_in(made: Any) -> list[Any]:
    """Return an object and all objects that it holds, each once."""
    return [made, *(one for _, one in objects_held(made))]


def without_backward(made: Any) -> Any:
    """Return an object without the functions in it that compute gradients: none can be pickled."""
    if not any(_backward_of(one) for one in objects_in(made)):
        return made
    again = copy.deepcopy(made)
    for one in objects_in(again):
        for name in _backward_of(one):
            object.__setattr__(one, name, None)
    return again


def _backward_of(owner: Any) -> list[str]:
    held = [] if is_collection(owner) else items_of(owner)
    return [name for name, one in held if BACKWARD.fullmatch(name) and inspect.isfunction(one)]


def objects_held(owner: Any, path: str = "", seen: set[int] | None = None) -> list[tuple[str, Any]]:
    """Return the objects that an object holds, each once, with its first path."""
    seen = {id(owner)} if seen is None else seen
    found: list[tuple[str, Any]] = []
    for key, value in items_of(owner):
        inside = f"{path}.{key}".removeprefix(".")
        if _holds(value) and id(value) not in seen:
            seen.add(id(value))
            found += [] if is_collection(value) else [(inside, value)]
            found += objects_held(value, inside, seen)
    return found


def tables_of(made: Any, called: Callable[..., Any], again: Callable[[], Any]) -> set[Path]:
    """Return the paths of the arrays that are no parameters: the same for all random numbers.

    `again` makes another object. Arrays of one number, as gains and biases begin with, are
    parameters. So are all where random numbers have a seed of their own.
    """
    held = {one.path: np.asarray(one.array) for one in array_places(made, called)}
    varied = {path: one for path, one in held.items() if one.size and np.ptp(one) > 0}
    if not varied:
        return set()
    state = np.random.get_state()
    try:
        np.random.seed(1)
        other = {one.path: np.asarray(one.array) for one in array_places(again(), called)}
    finally:
        np.random.set_state(state)
    same = {p for p, one in varied.items() if p in other and np.array_equal(one, other[p])}
    draws = any(map(_draws, {type(one) for one in objects_in(made)}))
    return set() if draws and same == set(varied) else same


_RANDOM = frozenset(["random", "randn", "rand", "normal", "uniform", "standard_normal"])
"""Names by which random numbers are drawn."""


def _draws(kind: type) -> bool:
    """Say whether a method of a class names random numbers."""
    names = {name for one in methods_of(kind) for code in codes_of(one) for name in code.co_names}
    return bool(_RANDOM & names)
