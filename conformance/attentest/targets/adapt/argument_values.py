"""The values that the arguments of a constructor or a function have."""

from inspect import Parameter

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
    held = constructor_arguments(code.thing) if callable(code.thing) else {}
    filled = code.construction.fillings if code.construction is not None else {}
    for own, parameter in held.items():
        if own in filled:
            value: object = filled[own].value(SIZES)
        else:
            value = reading.given.get(own, parameter.default)
        if value is not Parameter.empty:
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
