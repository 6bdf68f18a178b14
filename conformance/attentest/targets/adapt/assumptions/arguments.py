"""The values that the arguments of a constructor or a function have."""

import ast
from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter
from typing import Any, Protocol

import torch

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.probing import SIZES
from attentest.targets.adapt.reading import Reading
from attentest.targets.signatures import constructor_arguments


def arguments_of(code: Code, reading: Reading) -> dict[str, object]:
    """Return the arguments of a constructor or a function with the values that they have.

    The fields of an object that holds settings are among them, as `config.hidden_act`. Values that
    the user gives as words are numbers where they are read as such.
    """
    found: dict[str, object] = {}
    held = _arguments(code.thing)
    filled = code.construction.fillings if code.construction is not None else {}
    for own, parameter in held.items():
        value = reading.given.get(own, parameter.default)
        if own in filled:
            value = _evaluated(partial(filled[own].value, SIZES))
        if value is not Parameter.empty:
            found[own] = value
    return _flat(found)


def _evaluated(value: Callable[[], object]) -> object:
    """Return a value at the sizes here, empty where settings of the user's refuse these sizes."""
    try:
        return value()
    except Exception:  # code that a user wrote may raise anything
        return Parameter.empty


def _arguments(thing: object) -> dict[str, Parameter]:
    """Return the arguments of a function or a class, {} where it has no signature in Python."""
    try:
        return constructor_arguments(thing) if callable(thing) else {}
    except (TypeError, ValueError):  # functions of C
        return {}


def _flat(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return `arguments` with the fields of settings in the place of these, and numbers read."""
    found: dict[str, object] = {}
    for own, value in arguments.items():
        found |= _fields(own, value) or {own: _number(value)}
    return found


def _fields(own: str, value: object) -> dict[str, object]:
    """Return the fields of an object of settings, {} for a value of another kind."""
    is_plain = callable(value) or isinstance(value, torch.Tensor)
    if is_plain or not hasattr(value, "__dict__"):
        return {}
    return {f"{own}.{name}": one for name, one in vars(value).items()}


def _number(value: object) -> object:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:  # a name
        return value


class Call(Protocol):
    """A call that builds a model: its `expression` of the name `sizes`, evaluated in `space`."""

    @property
    def expression(self) -> str:
        """The source of the call."""

    @property
    def space(self) -> Mapping[str, Any]:
        """The names that it uses."""


def arguments_in(building: Call) -> dict[str, object]:
    """Return the arguments of a call with their values, its defaults included.

    Arguments by position are left out.
    """
    call = ast.parse(building.expression, mode="eval").body
    if not isinstance(call, ast.Call):
        return {}
    names = {**building.space, "sizes": SIZES}
    made = eval(ast.unparse(call.func), names)
    held = _arguments(made)
    found = {own: one.default for own, one in held.items() if one.default is not Parameter.empty}
    for own in list(held)[: len(call.args)]:
        found.pop(own, None)
    for one in call.keywords:
        if one.arg is not None:
            found[one.arg] = _evaluated(partial(eval, ast.unparse(one.value), names))
    return _flat({own: one for own, one in found.items() if one is not Parameter.empty})
