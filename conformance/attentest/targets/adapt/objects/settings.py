"""Classes of settings near a class: those whose objects have what its constructor reads."""

import ast
import inspect
import re
import sys
import textwrap
import typing
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import CONFIGURATION
from attentest.targets.adapt.objects.configuration import holds_settings
from attentest.targets.neighbours import classes_near, file_of
from attentest.targets.signatures import constructor_arguments, source_of

_ENDS = ("config", "configuration", "cfg")
"""Last letters of the name of an argument that gets settings, after the part that they are of."""

_CLASSES = (
    *_ENDS,
    *("args", "arguments", "settings", "hparams", "hyperparameters", "hyperparams", "params"),
)
"""Last letters of the name of a class of settings."""

_NAMED = re.compile(r"\w+_(args|hparams|settings|hyperparams)")
"""A name of an argument that gets settings after the part that they are of."""

_NO_SETTINGS = (nn.Module, dict)


def is_configuration(own: str, thing: Callable[..., Any] | None = None) -> bool:
    """Say whether an argument called `own` gets settings: by its name, or as `thing` reads it.

    The constructor reads settings by names in brackets; the words of a vocabulary are none.
    """
    name = squashed(own).removesuffix("dict")
    if name in CONFIGURATION or name.endswith(_ENDS) or _NAMED.fullmatch(own.lower()):
        return True
    keys = keys_read_of(thing, own) if thing is not None else frozenset()
    return bool(keys) and all(one.isidentifier() for one in keys)


def gets_settings(parameter: inspect.Parameter, thing: Callable[..., Any] | None = None) -> bool:
    """Say whether an argument of `thing` gets settings, and is annotated as nothing else."""
    return is_configuration(parameter.name, thing) and not is_plain(parameter)


def is_plain(parameter: inspect.Parameter) -> bool:
    """Say whether an argument is annotated as a number or a word: it gets no settings."""
    return parameter.annotation in (*_PLAIN, *(one.__name__ for one in _PLAIN))


def settings_read_later(
    thing: Callable[..., Any], parameter: inspect.Parameter
) -> type[Any] | None:
    """Return the class of optional settings that the methods of a class read; None for none.

    Its objects can be built without them, and not called.
    """
    own, (*kinds,) = parameter.name, typing.get_args(parameter.annotation)
    classes = [one for one in kinds if inspect.isclass(one) and one is not type(None)]
    if parameter.default is not None or len(classes) != 1 or len(kinds) != 2:
        return None
    methods = [one for name, one in vars(thing).items() if name != "__init__"]
    reads = re.compile(rf"\bself\.{own}\.\w")
    read = any(inspect.isfunction(one) and reads.search(source_of(one)) for one in methods)
    return classes[0] if is_configuration(own) and read else None


_PLAIN = (int, float, bool, str)


def holds_any_field(kind: type, thing: Callable[..., Any]) -> bool:
    """Say whether objects of the class `kind` hold whatever fields they are given.

    A mapping of another package than that of `thing` does, as one of a library of settings.
    """
    if kind in (SimpleNamespace, Namespace, inspect.Parameter.empty):
        return True
    homes = {one.__module__.partition(".")[0] for one in (kind, thing)}
    return len(homes) == 2 and issubclass(kind, Mapping)


def is_made_of_settings(thing: type) -> bool:
    """Say whether an object of the class `thing` is made of settings that it needs by itself."""
    needed = [
        own
        for own, one in constructor_arguments(thing).items()
        if one.default is inspect.Parameter.empty
    ]
    return len(needed) == 1 and is_configuration(needed[0], thing)


def settings_classes(thing: Callable[..., Any], own: str) -> Sequence[type]:
    """Return the nearest classes of settings that `thing` may get as its argument `own`.

    Their objects have every field that the constructor reads. The one of the annotation is taken
    alone, and so is the one with the longest name that that of `thing` begins with:
    `DecoderConfig` for `DecoderLayer`.
    """
    parameter = constructor_arguments(thing).get(own)
    read = fields_read_of(thing, own)
    if _is_read_by_key(thing, own):
        read |= {"__getitem__"}
    annotated = _annotated(parameter.annotation) if parameter is not None else []
    for found in classes_near(thing, _is_named, _NO_SETTINGS):
        fitting = list(dict.fromkeys(one for _, one in found if read <= _fields_of(one)))
        if not fitting:
            continue
        meant = [one for one in fitting if one.__name__ in annotated]
        return meant if len(meant) == 1 else _named_alike(thing, fitting)
    return []


def settings_near(thing: Callable[..., Any]) -> dict[str, type]:
    """Return the classes of settings that an argument of `thing` may get, by their names."""
    named = [own for own in constructor_arguments(thing) if is_configuration(own, thing)]
    return {one.__name__: one for own in named for one in settings_classes(thing, own)}


def settings_doubts(thing: Callable[..., Any], expression: str) -> tuple[str, ...]:
    """Return the assumptions on the classes of settings in `expression` that are of other files."""
    home = getattr(sys.modules.get(thing.__module__), "__dict__", {})
    named = [own for own in constructor_arguments(thing) if is_configuration(own, thing)]
    return tuple(
        settings_assumed(thing, own, one)
        for own in named
        for one in settings_classes(thing, own)
        if f"{one.__name__}(" in expression and one.__name__ not in home
    )


def several_settings(thing: Any, own: str, classes: Sequence[type]) -> str:
    """Return the question about several classes of settings."""
    names = [one.__name__ for one in classes]
    return (
        f"{thing.__name__} gets an object of settings as {own}, and several classes have what it "
        f"reads: {', '.join(names)}. Say which one: --give {own}={names[0]} (in Python: "
        f"given={{{own!r}: {names[0]!r}}})."
    )


def settings_assumed(thing: Any, own: str, settings: type) -> str:
    """Return what is assumed about a class of settings that nothing but its fields names."""
    file = file_of(settings)
    where = f" of {file.name}" if file and file != file_of(thing) else ""
    return (
        f"assumed that {own} is a {settings.__name__}{where}, which has the fields that are read, "
        f"and judged with its defaults where they are no sizes"
    )


def _is_named(name: str) -> bool:
    return squashed(name).endswith(_CLASSES)


def _named_alike(thing: Callable[..., Any], found: Sequence[type]) -> Sequence[type]:
    """Return the one of `found` whose name begins as that of `thing` the longest, else all."""
    own = squashed(getattr(thing, "__name__", ""))
    stems = {one: _stem(squashed(one.__name__)) for one in found}
    alike = [one for one, stem in stems.items() if stem and own.startswith(stem)]
    longest = max((len(stems[one]) for one in alike), default=0)
    nearest = [one for one in alike if len(stems[one]) == longest]
    return nearest if len(nearest) == 1 else found


def _stem(name: str) -> str:
    """Return the name of a class of settings without its ending."""
    return next(name.removesuffix(end) for end in _CLASSES if name.endswith(end))


def _annotated(annotation: Any) -> list[str]:
    """Return the names of the classes in an annotation, or in its text."""
    if isinstance(annotation, str):
        return re.findall(r"\w+", annotation)
    held = [annotation, *typing.get_args(annotation)]
    return [one.__name__ for one in held if inspect.isclass(one)]


@lru_cache(maxsize=1024)
def _is_read_by_key(thing: Callable[..., Any], own: str) -> bool:
    """Say whether the code of the constructor reads the argument `own` by a word in brackets."""
    nodes = ast.walk(code_tree(_builder(thing)))
    return any(
        isinstance(one, ast.Subscript)
        and isinstance(one.value, ast.Name)
        and one.value.id == own
        and isinstance(one.slice, ast.Constant)
        and isinstance(one.slice.value, str)
        for one in nodes
    )


def fields_read_of(thing: Callable[..., Any], own: str) -> frozenset[str]:
    """Return the fields of the argument `own` that the code of the constructor reads."""
    found: set[str] = set()
    for node in ast.walk(code_tree(_builder(thing))):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            held = node.value
            name = held.attr if isinstance(held, ast.Attribute) else getattr(held, "id", "")
            found |= {node.attr} if name == own else set()
    return frozenset(found)


@lru_cache(maxsize=1024)
def keys_read_of(thing: Callable[..., Any], own: str) -> frozenset[str]:
    """Return the keys of the argument `own` that the code of the constructor reads."""
    nodes = ast.walk(code_tree(_builder(thing)))
    return frozenset(
        node.slice.value
        for node in nodes
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name | ast.Attribute)
        and getattr(node.value, "attr", getattr(node.value, "id", "")) == own
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    )


def is_unpacked(thing: Callable[..., Any], own: str) -> bool:
    """Say whether the constructor hands its argument `own` on by `**`."""
    calls = [one for one in ast.walk(code_tree(_builder(thing))) if isinstance(one, ast.Call)]
    handed = [one.value for call in calls for one in call.keywords if one.arg is None]
    return any(ast.unparse(one) in (own, f"self.{own}") for one in handed)


@lru_cache(maxsize=1024)
def _fields_of(settings: type) -> frozenset[str]:
    """Return the attributes that objects of `settings` have."""
    names = {*dir(settings), *constructor_arguments(settings)}
    for table in ("__dataclass_fields__", "model_fields", "attribute_map"):
        held = getattr(settings, table, None)
        names |= set(held) if isinstance(held, Mapping) else set()
    makers = ("__post_init__", "model_post_init", *["__init__"] * (not holds_settings(settings)))
    for one in settings.__mro__[:-1]:
        written = [vars(one)[name] for name in makers if name in vars(one)]
        nodes = [node for maker in written for node in ast.walk(code_tree(maker))]
        stored = [node for node in nodes if isinstance(node, ast.Attribute)]
        names |= {node.attr for node in stored if isinstance(node.ctx, ast.Store)}
    return frozenset(names)


def _builder(thing: Any) -> Any:
    """Return the code that builds: the constructor of a class, or the function itself."""
    return thing if inspect.isroutine(thing) else getattr(thing, "__init__", thing)


def mentions(thing: Callable[..., Any], name: str) -> bool:
    """Say whether the module in which `thing` is defined has `name` in its source."""
    try:
        return name in inspect.getsource(inspect.getmodule(thing) or thing)
    except (OSError, TypeError):
        return False


def code_tree(thing: Any) -> ast.AST:
    """Return the code of `thing`, an empty module where it has none that can be read."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, SyntaxError, TypeError):
        return ast.Module([], [])
