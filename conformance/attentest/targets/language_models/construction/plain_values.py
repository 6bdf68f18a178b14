"""Required arguments that are no sizes, by their annotations: switches, and words of the code."""

import ast
import inspect
import re
import typing
from collections.abc import Iterator
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.language_models.construction.code import tree_of
from attentest.targets.language_models.construction.settings import USUAL

CAUSAL = ("causal", "iscausal")
"""Names of the switch that hides later tokens, which a decoder-only model does."""

_ON = re.compile("causal")


def value_of(own: str, parameter: inspect.Parameter, top: Any) -> str:
    """Return the expression of an argument that is a switch or a word, "" for any other.

    A switch that is required is off, unless its name says that it is usually on, and a word is the
    first one that the code of the file compares it with. A switch that hides later tokens is on,
    whatever its default is.
    """
    name, kind = squashed(own), parameter.annotation
    if name in CAUSAL and parameter.default is False:
        return "True"
    if parameter.default is not inspect.Parameter.empty:
        return ""
    if kind is bool or kind == "bool":
        return USUAL.get(name, str(bool(_ON.search(name))))
    if typing.get_origin(kind) is typing.Literal:
        return repr(typing.get_args(kind)[0])
    if kind is str or kind == "str":
        return next((repr(one) for one in _compared(inspect.getmodule(top), own)), "")
    return ""


def assumed_of(own: str, code: str) -> str:
    """Return the assumption that an argument gets the value of the expression `code`."""
    return (
        f"assumed {own}={code}, which nothing says: --give {own}=VALUE judges it with another one"
    )


def _compared(home: Any, own: str) -> Iterator[str]:
    """Yield the words that code of the module `home` compares what is called `own` with."""
    for node in ast.walk(tree_of(home)):
        if not isinstance(node, ast.Compare):
            continue
        left = getattr(node.left, "attr", getattr(node.left, "id", ""))
        if left == own and isinstance(node.ops[0], ast.Eq | ast.In):
            held = [one for side in node.comparators for one in ast.walk(side)]
            yield from (
                one.value
                for one in held
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )
