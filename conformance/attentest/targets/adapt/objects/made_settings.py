"""Objects of settings that the same file holds, or that a function of it makes."""

import argparse
import ast
import contextlib
import inspect
import io
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from attentest.targets.adapt.fillings import Filling, fixed
from attentest.targets.adapt.names import AT_CALLS
from attentest.targets.adapt.objects.settings import (
    code_tree,
    fields_read_of,
    keys_read_of,
    mentions,
    settings_classes,
)
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.signatures import source_of

_MAKERS = ("SimpleNamespace(", "ArgumentParser(", "Namespace(", "dict(", "return {")
_NAMES = re.compile(r"args|arguments|config|cfg|settings|hparams|hyperparam|options|opts|params")
"""Words in the name of settings, or of a function that makes them: no other one is called."""

Fill = Callable[[str, Collection[str]], Filling | None]
"""Returns the filling of a field by its name, beside the names that are known."""

_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class MadeSettings:
    """The plain `fields` of the settings that the function `maker` makes; none for "" as that.

    `held` says that `maker` is the name of the settings themselves.
    """

    maker: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    held: bool = False

    def filling(self, name: str) -> Filling | None:
        """Return what the field `name` is filled with, None where there is none."""
        return fixed(self.fields[name]) if name in self.fields else None

    def remark(self, own: str) -> str:
        """Return what is assumed of the argument `own`, "" for nothing."""
        source = f"{self.maker} holds" if self.held else f"{self.maker}() makes"
        return f"assumed that {own} has what {source}, where it is no size" if self.maker else ""

    def fillings_at_calls(
        self, thing: Callable[..., Any], known: Collection[str], fill: Fill
    ) -> dict[str, Filling]:
        """Return what `fill` gives for fields that are read when what `thing` builds is called."""
        found = {name: fixed(value) for name, value in AT_CALLS.items() if mentions(thing, name)}
        return found | {name: fill(name, known) or fixed(None) for name in self.later(thing, known)}

    def later(self, thing: Callable[..., Any], known: Collection[str]) -> list[str]:
        """Return the fields besides the `known` ones that the file of `thing` reads somewhere.

        They may be read when what `thing` builds is called.
        """
        source = source_of(sys.modules.get(thing.__module__))
        read = r"""\.{0}\b|\[["']{0}["']\]"""
        return [
            name
            for name in self.fields
            if name not in known and re.search(read.format(re.escape(name)), source)
        ]


def made_settings(thing: Callable[..., Any], own: str) -> MadeSettings:
    """Return the settings that `thing` may get as its argument `own`: those of its file.

    They have every field that the constructor reads. Of several, what all tables hold alike is
    taken, and several of another kind are none. A class of settings in the file is meant where
    there is one and no field is read by key. A class without arguments makes settings, too.
    """
    keys = keys_read_of(thing, own)
    read = fields_read_of(thing, own) | keys
    home = dict(vars(sys.modules[thing.__module__])) if thing.__module__ in sys.modules else {}
    found = []
    for name, one in home.items():
        if not _NAMES.search(name.lower()):
            continue
        held = _plain(one) if read else {}
        is_own = inspect.isfunction(one) and one.__module__ == thing.__module__
        fields = _fields_of(one) if is_own else held
        others = set(one) if held and isinstance(one, dict) else set()  # such as a dtype
        if fields and read <= fields.keys() | others:
            found.append(MadeSettings(name, fields, held=bool(held)))
    near = [] if keys else list(settings_classes(thing, own))
    if not found and len(near) == 1 and (fields := _fields_of_class(near[0], read)):
        return MadeSettings(near[0].__name__, fields)
    classes = [one for one in near if one.__name__ in home]
    return _alike(found) if found and not classes else MadeSettings()


@lru_cache(maxsize=256)
def _fields_of_class(cls: type, read: frozenset[str]) -> Mapping[str, Any]:
    """Return the plain attributes of an object of `cls`, of which the fields `read` are needed.

    Of a class that takes arguments, they are those that its code writes out, where none of the
    fields is one of the arguments.
    """
    try:
        if arguments := inspect.signature(cls).parameters:
            return _fields_written(cls, read, arguments)
        with undisturbed(), _quiet():
            made = cls()
    except (Exception, SystemExit):  # code that a user wrote may raise anything
        return {}
    held = {**vars(cls), **(vars(made) if hasattr(made, "__dict__") else {})}
    return _plain({name: one for name, one in held.items() if not name.startswith("_")})


def _fields_written(
    cls: type, read: Collection[str], arguments: Collection[str]
) -> Mapping[str, Any]:
    """Return the attributes that the constructor of `cls` assigns plain values, or may assign.

    There are none where it does not assign all fields that are `read`, or makes one of arguments.
    """
    found: dict[str, Any] = {}
    others: set[str] = set()
    for one in ast.walk(code_tree(vars(cls).get("__init__"))):
        match one:
            case ast.Assign(targets=[ast.Attribute(attr=own)], value=value):
                values = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
                plain = [held.value for held in values if isinstance(held, ast.Constant)]
                names = {held.id for held in ast.walk(value) if isinstance(held, ast.Name)}
                if plain:
                    found[own] = plain[0]
                elif not names & {*arguments}:
                    others.add(own)
    return _plain(found) if {*read} <= found.keys() | others else {}


def _alike(found: Sequence[MadeSettings]) -> MadeSettings:
    """Return what several tables hold alike, or the one that there is; none for other kinds."""
    first, *rest = found
    if not rest or not all(one.held for one in found):
        return MadeSettings() if rest else first
    fields = {
        name: value
        for name, value in first.fields.items()
        if all(one.fields.get(name, ...) == value for one in rest)
    }
    return MadeSettings(f"each of {first.maker}, {rest[0].maker}, ..", fields, held=True)


@lru_cache(maxsize=256)
def _fields_of(make: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the plain fields of what a function without arguments makes, {} for all else."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    arguments = inspect.signature(make).parameters.values()
    if any(one.default is one.empty and one.kind not in kinds for one in arguments):
        return {}
    source = source_of(make)
    if "return" not in source or not any(one in source for one in (*_MAKERS, *_tables(make))):
        return {}
    try:
        with undisturbed(), patch.object(sys, "argv", sys.argv[:1]), _quiet():
            made = make()
    except (Exception, SystemExit):  # code that a user wrote may raise anything
        return {}
    return _plain(made)


def _plain(made: Any) -> Mapping[str, Any]:
    """Return the plain fields of settings, {} for what is neither a dictionary nor a namespace."""
    if isinstance(made, SimpleNamespace | argparse.Namespace):
        made = vars(made)
    if not isinstance(made, dict) or not all(isinstance(name, str) for name in made):
        return {}
    return {name: one for name, one in made.items() if type(one) in _PLAIN and name.isidentifier()}


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def _tables(make: Callable[..., Any]) -> list[str]:
    """Return calls of the classes near `make` that inherit from `dict` and add no constructor."""
    held = list(make.__globals__.items())
    classes = [(name, one) for name, one in held if inspect.isclass(one) and issubclass(one, dict)]
    return [f"{name}(" for name, one in classes if one.__init__ is dict.__init__]
