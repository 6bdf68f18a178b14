"""Masks that a call makes where none is given, and that mean the contrary of a given one."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from attentest.targets.adapt.reading import Contrary

_SAID = {"keep": "may be attended", "blocks": "is hidden"}
_ONES = ("ones", "ones_like", "new_ones")
_SHAPED = ("bool", "long", "int", "float", "to", "type", "type_as", "unsqueeze", "expand", "view")
"""Methods that leave what an entry of a mask means."""


def demand_default(name: str, own: str, meaning: str, thing: Callable[..., Any]) -> None:
    """Raise Contrary where the default that `thing` makes of its mask `own` means the contrary.

    A given mask has the `meaning` by its numbers: "keep" or "blocks". A default of ones hides
    nothing, and one that is compared with an id of padding says which tokens are none.
    """
    call = getattr(thing, "forward", thing)
    found, code = default_meaning(call, own)
    if found and meaning in _SAID and found != meaning:
        raise Contrary(
            f"By its numbers True in the {own} of {name} says what {_SAID[meaning]}, and where "
            f"none is given it takes {code}, in which True says what {_SAID[found]}: a given mask "
            f"is used the wrong way round, or the default is. Say which one is meant: --set "
            f"mask={own}:{found} or --set mask={own}:{meaning}."
        )


def default_meaning(call: Callable[..., Any], own: str) -> tuple[str, str]:
    """Return what True means in the default of the mask `own`, and its code, "" for none.

    That counts only where all else that is assigned to `own` is assigned to the default too.
    """
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(call))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return "", ""
    defaults = list(_defaults(tree, own))
    every = [one for one in ast.walk(tree) if _assigns(one, own)]
    plain = [one for one in getattr(tree, "body", ()) if _assigns(one, own)]
    if len(defaults) != 1 or len(every) > 1 + len(plain):
        return "", ""
    (value,) = defaults
    return _meaning(_bare(value)), ast.unparse(value)


def _defaults(tree: ast.AST, own: str) -> Iterator[ast.expr]:
    """Yield what is taken for `own` where it is None, of statements that do nothing else."""
    for one in ast.walk(tree):
        match one:
            case ast.If(test=test, body=[ast.Assign(value=value) as made], orelse=[]):
                if _is_none(test, own) and _assigns(made, own):
                    yield value
            case ast.Assign(value=ast.IfExp(test=test, body=body, orelse=orelse)):
                if _assigns(one, own) and _is_none(test, own) and _reads_alone(orelse, own):
                    yield body
                elif _assigns(one, own) and _is_given(test, own) and _reads_alone(body, own):
                    yield orelse


def _is_none(test: ast.expr, own: str) -> bool:
    return ast.unparse(test) == f"{own} is None"


def _is_given(test: ast.expr, own: str) -> bool:
    return ast.unparse(test) == f"{own} is not None"


def _reads_alone(node: ast.expr, own: str) -> bool:
    return isinstance(node, ast.Name) and node.id == own


def _assigns(node: ast.AST, own: str) -> bool:
    """Say whether a statement assigns to the name `own`."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    names = (each for one in targets if one is not None for each in ast.walk(one))
    return any(isinstance(one, ast.Name) and one.id == own for one in names)


def _bare(node: ast.expr) -> ast.expr:
    """Return an expression without the methods and indices that leave its meaning."""
    match node:
        case ast.Subscript(value=inner):
            return _bare(inner)
        case ast.Call(func=ast.Attribute(attr=name, value=inner)) if name in _SHAPED:
            return _bare(inner)
    return node


def _meaning(node: ast.expr) -> str:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in _ONES:
            return "keep"
        case ast.Compare(left=ast.Name(), ops=[ast.NotEq()], comparators=[pad]) if _is_pad(pad):
            return "keep"
        case ast.Compare(left=ast.Name(), ops=[ast.Eq()], comparators=[pad]) if _is_pad(pad):
            return "blocks"
        case ast.Call(func=ast.Attribute(attr="ne", value=ast.Name()), args=[pad]) if _is_pad(pad):
            return "keep"
        case ast.Call(func=ast.Attribute(attr="eq", value=ast.Name()), args=[pad]) if _is_pad(pad):
            return "blocks"
    return ""


def _is_pad(node: ast.expr) -> bool:
    """Say whether an expression is an id of padding: a number, or what is named so."""
    return isinstance(node, ast.Constant) or "pad" in ast.unparse(node).lower()
