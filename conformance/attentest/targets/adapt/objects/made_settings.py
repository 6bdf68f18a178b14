"""Objects of settings that a function of the same file makes, as of an argument parser."""

import argparse
import contextlib
import inspect
import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from attentest.targets.adapt.fillings import Filling, fixed
from attentest.targets.adapt.objects.settings import fields_read_of, settings_classes
from attentest.targets.adapt.probing import undisturbed

_MAKERS = ("SimpleNamespace(", "ArgumentParser(", "Namespace(")
_NAMES = re.compile(r"args|arguments|config|cfg|settings|hparams|hyperparam|options|opts|params")
"""Words in the name of a function that makes settings: no other function is called."""

_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class MadeSettings:
    """The plain `fields` of the settings that the function `maker` makes; none for "" as that."""

    maker: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    def filling(self, name: str) -> Filling | None:
        """Return what the field `name` is filled with, None where there is none."""
        return fixed(self.fields[name]) if name in self.fields else None

    def remark(self, own: str) -> str:
        """Return what is assumed of the argument `own`, "" for nothing."""
        said = f"assumed that {own} has what {self.maker}() makes, where it is no size"
        return said if self.maker else ""


def made_settings(thing: Callable[..., Any], own: str) -> MadeSettings:
    """Return the settings that one function makes, and that `thing` may get as its argument `own`.

    They have every field that the constructor reads; those of several functions are none, and a
    class of settings is meant where there is one.
    """
    read = fields_read_of(thing, own)
    home = sys.modules.get(thing.__module__)
    found = []
    for name, one in list(vars(home).items()) if home else []:
        is_own = inspect.isfunction(one) and one.__module__ == thing.__module__
        if is_own and _NAMES.search(name.lower()):
            fields = _fields_of(one)
            found += [MadeSettings(name, fields)] * bool(fields and read <= fields.keys())
    if len(found) != 1 or settings_classes(thing, own):
        return MadeSettings()
    return found[0]


@lru_cache(maxsize=256)
def _fields_of(make: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the plain fields of what a function without arguments makes, {} for all else."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    arguments = inspect.signature(make).parameters.values()
    if any(one.default is one.empty and one.kind not in kinds for one in arguments):
        return {}
    source = _source(make)
    if not any(one in source for one in _MAKERS) or "return" not in source:
        return {}
    try:
        with undisturbed(), patch.object(sys, "argv", sys.argv[:1]), _quiet():
            made = make()
    except (Exception, SystemExit):  # code that a user wrote may raise anything
        return {}
    if not isinstance(made, SimpleNamespace | argparse.Namespace):
        return {}
    return {name: one for name, one in vars(made).items() if type(one) in _PLAIN}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def _source(make: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(make)
    except (OSError, TypeError):
        return ""
