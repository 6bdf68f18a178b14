"""The names of masks in code around the class of an encoder, which may say what they mean."""

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.encoders.inputs.arguments import hides
from attentest.targets.adapt.masks import OF_CALLER
from attentest.targets.neighbours import bodies_naming

_KEPT = ("attentionmask", "attentionmasks", "inputmask")
"""Names of masks that tokenizers return: 1 for a real token."""

_SAME = ("to", "cuda", "cpu", "long", "int", "float", "half", "bool", "unsqueeze", "contiguous")
"""Methods that leave what an entry means as it is."""


def words_of_callers(thing: Any) -> str:
    """Return what the names of the masks say that the class `thing` is called with, "" for none."""
    if not (inspect.isclass(thing) and issubclass(thing, nn.Module)):
        return ""
    own = [*inspect.signature(thing.forward).parameters][1:]
    said = [
        f"{name} is the {given} {OF_CALLER}: 1 for a real token."
        for name, given in dict.fromkeys(_given(thing, own))
        if hides(name) and squashed(name) not in _KEPT and squashed(given) in _KEPT
    ]
    return "\n".join(said)


def _given(thing: type, own: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the arguments `own` of calls of what `thing` makes, with the names of what they get."""
    for body in bodies_naming(thing):
        every = [*ast.walk(ast.Module(body, []))]
        models = {
            one.targets[0].id
            for one in every
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
            if _makes(one.value, thing.__name__)
        }
        for node in every:
            match node:
                case ast.Call(func=ast.Name(id=called), args=args, keywords=named):
                    if called in models:
                        yield from ((a, _name(value)) for a, value in zip(own, args, strict=False))
                        yield from ((one.arg, _name(one.value)) for one in named if one.arg)


def _makes(value: ast.expr, name: str) -> bool:
    called = (one.func for one in ast.walk(value) if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Name) and one.id == name for one in called)


def _name(value: ast.expr) -> str:
    """Return the name of a value, or the key that it has in a batch; "" for another expression."""
    match value:
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return key
        case ast.Call(func=ast.Attribute(value=held, attr=method)) if method in _SAME:
            return _name(held)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""
