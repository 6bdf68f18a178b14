"""Classes of settings that hold whatever keywords they are made with."""

import argparse
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from torch import nn

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.signatures import constructor_arguments

_PLAIN = (bool, int, float, str, type(None))
_NAME = "a_field_that_is_not_declared"
_BASES = ((object,), (SimpleNamespace,), (argparse.Namespace,))


@dataclass(frozen=True)
class KeptFields:
    """The `fields` that settings have where nothing else says them, and the class `made` of them.

    It is "" where the settings are of no class, or of one whose constructor takes no argument.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    made: str = ""


def kept_fields(classes: Mapping[str, type], others: Mapping[str, Any]) -> KeptFields:
    """Return the fields of the one class of `classes` that has them, `others` for none."""
    found = {
        name: one for name, one in classes.items() if keeps_keywords(one) or is_table_of_fields(one)
    }
    if len(found) != 1:
        return KeptFields(others)
    [(name, one)] = found.items()
    return KeptFields(declared_fields(one), name if keeps_keywords(one) else "")


def keeps_keywords(settings: type) -> bool:
    """Say whether an object of `settings` has every keyword that it is made with as a field.

    That is measured, on classes without a base but a namespace: those of libraries have fields of
    their own.
    """
    if settings.__bases__ not in _BASES or issubclass(settings, nn.Module):
        return False
    try:
        arguments = inspect.signature(settings).parameters.values()
        loose = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in arguments)
        needed = [one.name for one in arguments if _is_required(one)]
        if not loose:
            return False
        with undisturbed():
            made = settings(**{**dict.fromkeys(needed, 8), _NAME: 7})
        return getattr(made, _NAME, None) == 7
    except Exception:  # code that a user wrote may raise anything
        return False


def is_of_keywords(settings: type) -> bool:
    """Say whether `settings`, or a class that it inherits from, keeps keywords as fields.

    Fields of a class that inherits are those of one size alone: a model is built with others.
    """
    return any(keeps_keywords(one) for one in settings.__mro__[:-1])


def is_table_of_fields(settings: type) -> bool:
    """Say whether a class of settings has fields, and a constructor that takes no argument."""
    plain = settings.__bases__ == (object,) and not issubclass(settings, nn.Module)
    return plain and not constructor_arguments(settings) and bool(declared_fields(settings))


def declared_fields(settings: type) -> Mapping[str, Any]:
    """Return the plain attributes of a class of settings, or of its objects, with their values."""
    held = dict(vars(settings))
    if not constructor_arguments(settings):
        try:
            with undisturbed():
                held |= vars(settings())
        except Exception:  # code that a user wrote may raise anything
            return {}
    return {
        name: one for name, one in held.items() if not name.startswith("_") and type(one) in _PLAIN
    }


def _is_required(one: inspect.Parameter) -> bool:
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return one.default is inspect.Parameter.empty and one.kind not in loose
