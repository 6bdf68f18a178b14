"""The class of settings that a decoder-only model may get, and the fields that it holds."""

import inspect
import re
from collections.abc import Mapping
from enum import Enum
from types import SimpleNamespace
from typing import Any, get_args, is_typeddict

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.objects.configuration import holds_settings
from attentest.targets.adapt.objects.keyword_settings import (
    KeptFields,
    is_of_keywords,
    is_table_of_fields,
    kept_fields,
)
from attentest.targets.adapt.objects.made_settings import made_settings
from attentest.targets.adapt.objects.settings import (
    is_configuration,
    is_plain,
    settings_classes,
)
from attentest.targets.signatures import constructor_arguments

_SETTINGS = ("config", "configuration", "cfg", "args", "settings", "hparams", "hyperparameters")
"""Last letters of the name of a class of settings."""


def class_of(space: Mapping[str, Any], top: Any, own: str, parameter: inspect.Parameter) -> str:
    """Return the name of the class of settings that is meant for `own`, "" for none."""
    classes = {
        name: one
        for name, one in space.items()
        if inspect.isclass(one) and one is not top and not issubclass(one, nn.Module)
        if one not in (SimpleNamespace, dict) and _is_near(one, top)
        if not (is_of_keywords(one) or issubclass(one, Enum) or is_typeddict(one))
    }
    kinds = (parameter.annotation, *get_args(parameter.annotation), type(parameter.default))
    annotated = [name for name, one in classes.items() if any(one is kind for kind in kinds)]
    if any(is_table_of_fields(classes[name]) for name in annotated):
        return ""  # no argument of it sets a size: its fields are read by their names
    if annotated or (top is not None and made_settings(top, own).maker):
        return next(iter(annotated), "")
    named = is_configuration(own, top) or own == "p"
    if not named or parameter.annotation in (dict, SimpleNamespace) or is_plain(parameter):
        return ""
    held = [
        name
        for name, one in classes.items()
        if squashed(name).endswith(_SETTINGS) and constructor_arguments(one)
    ]
    if len(held) != 1 and top is not None:
        near = settings_classes(top, own)
        held = [one.__name__ for one in near if not is_of_keywords(one)]
    takes = len(held) == 1 and constructor_arguments(space.get(held[0], SimpleNamespace))
    return held[0] if takes else ""


def classes_of_defaults(thing: Any) -> dict[str, type]:
    """Return the classes of settings that `thing` has an object of by default, by their names."""
    kinds = {type(one.default) for one in constructor_arguments(thing).values()}
    return {one.__name__: one for one in kinds if holds_settings(one)}


def has_own_settings(parameter: inspect.Parameter, made: Any) -> bool:
    """Say whether a field of settings has settings by default, and no object of the class `made`.

    They stay as they are: a class that has the only other name of settings is not that of them.
    """
    if parameter.default is parameter.empty:
        return False
    kinds = (parameter.annotation, *get_args(parameter.annotation))
    if parameter.default is None:  # settings may be made of a dictionary
        typed = parameter.annotation is not parameter.empty
        words = str(parameter.annotation)
        if re.search(rf"(?i)\w({'|'.join(_SETTINGS)})\b", words):
            return True  # an object of a class of their own is made where none is given
        return typed and re.search(r"(?i)dict|mapping|any\b", words) is None
    named = made is not None and made.__name__ in str(parameter.annotation)
    return not (named or any(made is one for one in kinds))


def kept_of(space: Mapping[str, Any], top: Any, own: str) -> KeptFields:
    """Return the class whose objects hold what they are made with, or fields that are made."""
    named = {
        name: one
        for name, one in space.items()
        if inspect.isclass(one) and one.__module__ == top.__module__
        if squashed(name).endswith(_SETTINGS)
    }
    return kept_fields(named, made_settings(top, own).fields)


def _is_near(one: type, top: Any) -> bool:
    """Say whether a class belongs to the module of `top`, or is settings of its package."""
    home, own = str(top.__module__), one.__module__
    return own == home or (holds_settings(one) and own.partition(".")[0] == home.partition(".")[0])
