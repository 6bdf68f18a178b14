"""Required arguments that are no sizes, by their annotations: switches, and words of the code."""

import ast
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from enum import EnumMeta
from types import ModuleType
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.language_models.argument_names import caches_named
from attentest.targets.language_models.construction.code import only_stored, tree_of
from attentest.targets.language_models.construction.usual_values import USUAL
from attentest.targets.models.configurations import is_usually_on
from attentest.targets.signatures import constructor_arguments, source_of

CAUSAL = ("causal", "iscausal")
"""Names of the switch that hides later tokens, which a decoder-only model does."""

BIDIRECTIONAL = ("bidirectional", "isbidirectional")
"""Names of the switch that hides nothing: no model that continues a text from a cache has it on."""


def value_of(own: str, parameter: inspect.Parameter, top: Any) -> str:
    """Return the expression of an argument that is a switch or a word, "" for any other.

    A switch that is required is off, unless its name says that it is usually on, and a word is the
    first one that the code of the file compares it with. A switch that hides later tokens is on,
    whatever its default is, and one that hides nothing is off where a call takes a cache.
    """
    name, kind = squashed(own), parameter.annotation
    if name in CAUSAL and parameter.default is False:
        return "True"
    if name in BIDIRECTIONAL and parameter.default is True and _continues(top):
        return "False"
    if parameter.default is not inspect.Parameter.empty:
        return ""
    if kind is bool or kind == "bool":
        return USUAL.get(name, str(is_usually_on(own)))
    if typing.get_origin(kind) is typing.Literal:
        return repr(typing.get_args(kind)[0])
    if kind is str or kind == "str":
        return next((repr(one) for one in _compared(inspect.getmodule(top), own)), "")
    return ""


def words_for(
    own: str, parameter: inspect.Parameter, top: Any, space: Mapping[str, Any]
) -> list[str]:
    """Return the expressions that a required argument may have that is no size, [] for any other.

    These are the words that the code of the file compares it with, and the members of the class
    that annotates it, where `space` has its name. A field of a class of settings is a text or a
    number that most code does not read.
    """
    kind: Any = parameter.annotation
    is_settings = inspect.isclass(top) and not issubclass(top, nn.Module)
    if parameter.default is not inspect.Parameter.empty:
        return []
    members = dict(getattr(kind, "__members__", {})) if isinstance(kind, EnumMeta) else {}
    if members and space.get(name := str(getattr(kind, "__name__", ""))) is kind:
        return [f"{name}.{one}" for one in members]
    if typing.get_origin(kind) is typing.Literal:
        return [repr(one) for one in typing.get_args(kind)]
    words = dict.fromkeys(_compared(inspect.getmodule(top), own)) or _words_of_parts(top, own)
    if kind in (str, "str", inspect.Parameter.empty) and words:
        return [repr(one) for one in words]
    return [_UNREAD[kind]] if is_settings and kind in _UNREAD else []


_UNREAD: Mapping[Any, str] = {str: "''", "str": "''", float: "0.1", "float": "0.1"}
"""Values of fields that most code does not read, by their annotations."""


def unread_value(parameter: inspect.Parameter) -> str:
    """Return the expression for a field of settings that the model, it seems, does not read."""
    return _UNREAD.get(parameter.annotation, "None")


def value_unread(thing: Any, own: str, parameter: inspect.Parameter, top: Any) -> str | None:
    """Return the expression of a required argument that is no size, None for one that may be.

    It is one that a constructor keeps alone, or a text or a rate that the settings of `top` hold.
    """
    if parameter.default is not inspect.Parameter.empty:
        return None
    if only_stored(thing, own) and not _reads_field(top, thing, own):
        return "None"
    source = source_of(inspect.getmodule(top))
    if thing is top or re.search(rf"\.{own}\b|[\"']{own}[\"']", source):
        return None
    counted = parameter.annotation in (int, "int") and _TRAINING.search(own.lower())
    return "1" if counted else _UNREAD.get(parameter.annotation)


def _reads_field(top: Any, settings: Any, own: str) -> bool:
    """Say whether the files of `top` and of its parts read the field `own` of a settings class."""
    if not inspect.isclass(settings) or issubclass(settings, nn.Module):
        return False
    defined = source_of(settings)
    read = re.compile(rf"\.{own}\b|[\"']{own}[\"']")
    sources = (source_of(home).replace(defined, "") for home in _homes(top))
    return any(map(read.search, sources))


_TRAINING = re.compile(
    r"steps?$|interval|epochs?|seed|workers?$|iters?$|warmup|patience|^log|every"
)
"""Words of numbers of settings that say how a model is trained."""


def assumed_of(own: str, code: str) -> str:
    """Return the assumption that an argument gets the value of the expression `code`."""
    return (
        f"assumed {own}={code}, which nothing says: --give {own}=VALUE judges it with another one"
    )


def _continues(top: Any) -> bool:
    """Say whether a call of `top` takes a cache, with which it continues a text."""
    forward = getattr(top, "forward", None)
    return bool(caches_named(inspect.signature(forward).parameters) if forward else [])


def _words_of_parts(top: Any, own: str) -> dict[str, None]:
    """Return the words for what is called `own` in the classes that parts of `top` are made of.

    The default of an argument with that name comes first, and then what their files compare.
    """
    homes = _homes(top)
    held = [one for home in homes for one in vars(home).values() if inspect.isclass(one)]
    parts = [one for one in held if issubclass(one, nn.Module) and _is_own(one)]
    defaults = [getattr(constructor_arguments(one).get(own), "default", None) for one in parts]
    found = dict.fromkeys(one for one in defaults if isinstance(one, str))
    compared = (word for home in homes for word in _compared(home, own))
    keys = sorted(
        (word for home in homes for word in _keys(home, own)),
        key=lambda word: word.lower() not in _USUAL_KEYS,
    )
    return found | dict.fromkeys([*compared, *keys])


_USUAL_KEYS = ("relu", "layer", "layernorm", "sinusoidal", "post")
"""Keys of tables of parts that most models take."""


def _keys(home: Any, own: str) -> Iterator[str]:
    """Yield the keys of a table in the module `home` in which what is called `own` is looked up."""
    for node in ast.walk(tree_of(home)):
        match node:
            case ast.Subscript(ast.Name(table), ast.Name(name)):
                pass
            case ast.Call(ast.Attribute(ast.Name(table), "get"), [ast.Name(name), *_]):
                pass
            case _:
                continue
        held = getattr(home, table, None)
        if name == own and isinstance(held, Mapping):
            yield from (one for one in held if isinstance(one, str))


def _homes(top: Any) -> list[ModuleType]:
    """Return the modules of `top` and of the classes that its parts are made of."""
    found = dict.fromkeys(filter(None, [inspect.getmodule(top)]))
    for _ in range(_DEEPEST):
        held = [one for home in found for one in vars(home).values() if inspect.isclass(one)]
        parts = [one for one in held if issubclass(one, nn.Module) and _is_own(one)]
        found |= dict.fromkeys(filter(None, map(inspect.getmodule, parts)))
    return list(found)


def _is_own(part: type) -> bool:
    return part.__module__.partition(".")[0] != "torch"


_DEEPEST = 4
"""Limit of the files whose classes make parts of one another."""


def _compared(home: Any, own: str) -> Iterator[str]:
    """Yield the words that code of the module `home` compares what is called `own` with."""
    for node in ast.walk(tree_of(home)):
        if not isinstance(node, ast.Compare):
            continue
        named = node.left
        if isinstance(named, ast.Call) and isinstance(named.func, ast.Attribute):
            named = named.func.value if named.func.attr in ("lower", "upper") else named
        left = getattr(named, "attr", getattr(named, "id", ""))
        if left == own and isinstance(node.ops[0], ast.Eq | ast.In | ast.NotIn):
            held = [one for side in node.comparators for one in ast.walk(side)]
            yield from (
                one.value
                for one in held
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )
