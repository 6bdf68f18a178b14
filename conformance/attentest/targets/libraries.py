"""The library of arrays that a function or a class computes with: torch, or NumPy or JAX."""

import dis
import inspect
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any

from torch import nn

from attentest.targets.adapt.reading import Unclear
from attentest.targets.definitions import undecorated
from attentest_spec.torch import (
    is_of_variables,
    module_on_arrays,
    module_on_variables,
    on_arrays,
)
from attentest_spec.torch.array_reads import CALLS

_ARRAYS = {"jax": "JAX", "numpy": "NumPy"}
"""The libraries whose arrays are no tensors; code of JAX uses NumPy for constants, too."""

_APART = (
    "{0} is a class that computes with {1}, and its objects hold no parameters: `init` makes them "
    "and `apply` takes them. A class whose objects hold their arrays is read, and a function that "
    "takes them. A backend of your own has it judged; see docs/how-to/add-an-implementation.md"
)
_WHOLE = (
    "{0} is a whole model that computes with {1}. Decoder-only models are read by their "
    "operations, which cannot be recorded in {1}. Its parts are read one by one: name one of their "
    "classes"
)

_OF_TENSORS = frozenset(
    {
        *("contiguous", "masked_fill", "masked_fill_", "new_ones", "new_zeros", "permute"),
        *("requires_grad", "type_as", "unsqueeze", "unsqueeze_"),
    }
)
"""Methods of tensors that arrays do not have."""


def library_of(function: Any) -> str:
    """Return "numpy" or "jax" where `function` computes with its arrays, and "" for all others.

    The names that its code loads say so, those of the functions of its module that it calls as
    well, and those of its module where it loads none. Code that loads torch computes with tensors.
    """
    plain = undecorated(function)
    if not inspect.isfunction(plain):
        return ""
    codes = list(_functions(plain, set()))
    used = {root for one in codes for root in _roots(one)}
    if "torch" in used or any(_OF_TENSORS & _attributes(one.__code__) for one in codes):
        return ""
    around = _around(plain)
    return _first(used) or _annotated(plain) or ("" if "torch" in around else _first(around))


def is_certain(function: Any) -> bool:
    """Say whether no tensors are near a `function`, or a class, that computes with arrays.

    Its module does not import torch, or an annotation of an argument names arrays.
    """
    if inspect.isclass(function):
        return all(map(is_certain, filter(inspect.isfunction, vars(function).values())))
    plain = undecorated(function)
    return "torch" not in _around(plain) or bool(_annotated(plain))


def _around(function: FunctionType) -> set[str]:
    """Return the packages of all that the module of `function` holds."""
    return {_root(one) for one in _known(function).values()}


def _annotated(function: FunctionType) -> str:
    """Return the library whose arrays the annotations of `function` name, "" for none."""
    words = " ".join(map(str, function.__annotations__.values()))
    return "jax" if re.search(r"\b(jax|jnp)\b", words) else "numpy" if "ndarray" in words else ""


def _first(roots: Set[str]) -> str:
    """Return the first library of arrays among some packages, "" for none."""
    return next((name for name in _ARRAYS if name in roots), "")


def demand_parameters(thing: Any) -> None:
    """Raise Unclear for a class of arrays whose objects hold no parameters."""
    library = "" if is_of_variables(thing) else library_of_class(thing)
    if library and all(hasattr(thing, name) for name in ("init", "apply")):
        raise Unclear(_APART.format(thing.__name__, _ARRAYS[library]))


def of_tensors(thing: Any) -> Any:
    """Return `thing`; raise Unclear for a decoder-only model that is made of arrays."""
    if inspect.isclass(thing) and (library := library_of_class(inspect.unwrap(thing))):
        raise Unclear(_WHOLE.format(thing.__name__, _ARRAYS[library]))
    return thing


def library_of_class(thing: Any) -> str:
    """Return the library of a class that computes with arrays, "" for everything else."""
    if not inspect.isclass(thing) or issubclass(thing, nn.Module):
        return ""
    return _first(set(map(library_of, vars(thing).values())))


def with_tensors(thing: Any, *, rounded: bool) -> Any:
    """Return `thing`, or one that is called with tensors where it computes with arrays.

    With `rounded`, results in double precision have the precision of the input.
    """
    if is_of_variables(thing):
        return module_on_variables(thing, rounded=rounded)
    if library := library_of_class(thing):
        if not any(name in vars(one) for one in thing.__mro__ for name in CALLS):
            return thing  # a schedule, for instance, has other methods
        return module_on_arrays(thing, library, rounded=rounded)
    library = library_of(thing)
    return on_arrays(thing, library, rounded=rounded) if library else thing


def _known(function: FunctionType) -> Mapping[str, Any]:
    """Return what the code of `function` can load by name: globals, and those of its closure."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closed = {}
    for name, cell in cells:
        with suppress(ValueError):  # the cell is still empty
            closed[name] = cell.cell_contents
    return {**function.__globals__, **closed}


def _functions(function: FunctionType, seen: set[CodeType]) -> Iterator[FunctionType]:
    """Yield `function` and the functions of its module that it calls, directly or not."""
    if function.__code__ in seen:
        return
    seen.add(function.__code__)
    yield function
    for value in _loaded(function):
        plain = undecorated(value)
        if inspect.isfunction(plain) and plain.__globals__ is function.__globals__:
            yield from _functions(plain, seen)


def _roots(function: FunctionType) -> Iterator[str]:
    """Yield the packages of what `function` loads and imports."""
    yield from map(_root, _loaded(function))
    for code in _codes(function.__code__):
        for one in dis.get_instructions(code):
            if one.opname == "IMPORT_NAME":
                yield str(one.argval).partition(".")[0]


def _loaded(function: FunctionType) -> Iterator[Any]:
    known = _known(function)
    for code in _codes(function.__code__):
        for one in dis.get_instructions(code):
            if one.opname in _LOADS and one.argval in known:
                yield known[one.argval]


_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS")


def _attributes(code: CodeType) -> set[str]:
    return {
        str(one.argval)
        for inner in _codes(code)
        for one in dis.get_instructions(inner)
        if one.opname in ("LOAD_ATTR", "LOAD_METHOD")
    }


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _root(value: Any) -> str:
    """Return the package of a module, or that of the type or the definition of another object."""
    if isinstance(value, ModuleType):
        name = value.__name__
    else:
        name = getattr(value, "__module__", None) or type(value).__module__
    return str(name).partition(".")[0]
