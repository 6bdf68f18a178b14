"""Sizes of a model by where its constructor hands an argument on, whatever its name is."""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.models.size_names import size_by_words, sizes_named
from attentest.targets.signatures import constructor_arguments

_DEEPEST = 4
"""Limit of the classes that hand an argument on to one another."""

_ROWS = "rows"
HEAD_WIDTH = "head_width"
"""The width of a head, by which an argument is multiplied by a number of heads: no size itself."""

_OF_TORCH: Mapping[type[nn.Module], tuple[str, ...]] = {
    nn.Embedding: (_ROWS, "d_model"),
    nn.LayerNorm: ("d_model",),
    nn.RMSNorm: ("d_model",),
    nn.MultiheadAttention: ("d_model", "heads"),
    nn.TransformerEncoderLayer: ("d_model", "heads", "d_ff"),
    nn.TransformerDecoderLayer: ("d_model", "heads", "d_ff"),
}
"""The sizes that the first arguments of modules of torch are."""


OF_ANY_TABLE = ("numembeddings",)
"""Names of the number of rows of any table: a vocabulary only where nothing else is one."""

_NO_SIZE = re.compile(r"drop|type|segment|class|label|pad|seed|id(x)?$", re.IGNORECASE)
"""Words of arguments that are handed to modules of torch, and are no size of a model."""


def size_by_use(thing: Any, own: str, default: Any = inspect.Parameter.empty) -> str:
    """Return the size that the argument `own` of the class `thing` is by its uses, "" for none.

    It is the width of a table or of a norm, the number of rows of a table, or that of layers; or
    what the constructor of a part takes it as. Its `default` is none or a whole number then. Rows
    are no vocabulary next to an argument that is one by its name.
    """
    counted = default is inspect.Parameter.empty or (type(default) is int and default > 1)
    if not counted or _NO_SIZE.search(own):
        return ""
    found = _only(_sizes(thing, own, 0))
    names = list(constructor_arguments(thing))
    named = {_named_size(one, names) for one in names if one != own}
    return "" if found == "target_vocabulary" and found in named else found


USED = ("d_model", "heads", "d_ff", "layers")
"""The sizes that the uses of an argument show in a model of any number of sides."""


def codes_by_use(thing: Any, own: str, parameter: inspect.Parameter) -> list[str]:
    """Return the expression of the size that an argument is by its uses, none for no such one."""
    found = size_by_use(thing, own, parameter.default)
    return [f"sizes.{found}"] if found in USED else []


def field_by_use(top: Any, own: str) -> str:
    """Return the size that the field `own` of settings is by its uses in the file of `top`."""
    if not inspect.isclass(top) or _NO_SIZE.search(own):
        return ""
    home = vars(sys.modules.get(top.__module__, inspect))
    modules = [one for one in home.values() if inspect.isclass(one) and issubclass(one, nn.Module)]
    near = [one for one in modules if one.__module__.partition(".")[0] != "torch"]
    return _only(size for one in dict.fromkeys([top, *near]) for size in _sizes(one, own, 0))


def _only(found: Iterable[str]) -> str:
    several = set(found)
    return next(iter(several)) if len(several) == 1 else ""


def _sizes(thing: Any, own: str, depth: int) -> Iterator[str]:
    home = vars(sys.modules.get(getattr(thing, "__module__", ""), inspect))
    tree = _constructor(thing)
    if depth > _DEEPEST or _is_set(tree, own):
        return
    for statement in [one for one in ast.walk(tree) if isinstance(one, ast.stmt)]:
        for call in _calls_of(statement):
            for place, size in _taken_as(call, own, home, depth):
                name = ast.unparse(call.func) + _targets(statement) + place
                if size == _ROWS:
                    yield "max_length" if "pos" in name.lower() else "target_vocabulary"
                elif size:
                    yield size


def _taken_as(
    call: ast.Call, own: str, home: Mapping[str, Any], depth: int
) -> Iterator[tuple[str, str]]:
    """Yield the argument that `own` is handed on as in a call, and the size that it is there."""
    made = _named(call.func, home)
    if made is range:
        last = call.args[-1] if call.args else None
        yield from [("", "layers")] * (last is not None and _is(last, own))
        return
    if not (inspect.isclass(made) and issubclass(made, nn.Module)):
        return
    if made is nn.Linear and any(_times_heads(one, own) for one in call.args):
        yield "", HEAD_WIDTH
    names = list(constructor_arguments(made))
    handed = [*zip(names, call.args, strict=False)]
    handed += [(one.arg, one.value) for one in call.keywords if one.arg]
    kinds = next((sizes for one, sizes in _OF_TORCH.items() if issubclass(made, one)), ())
    inherited = "__init__" not in vars(made) or made in _OF_TORCH
    for name, value in handed:
        if not _is(value, own) or name not in names:
            continue
        if kinds and inherited:
            place = names.index(name)
            yield name, kinds[place] if place < len(kinds) else ""
        elif not made.__module__.startswith("torch."):
            yield name, _named_size(name, names) or _only(_sizes(made, name, depth + 1))


def _times_heads(node: ast.expr, own: str) -> bool:
    """Say whether an expression is a product of the argument `own` and a number of heads."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    parts = [node.left, node.right]
    while any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult) for one in parts):
        each = ([one.left, one.right] if isinstance(one, ast.BinOp) else [one] for one in parts)
        parts = [one for several in each for one in several]
    others = [getattr(one, "id", getattr(one, "attr", "")) for one in parts if not _is(one, own)]
    heads = any(_named_size(one, []) == "heads" or one == "H" for one in others if one)
    return heads and any(_is(one, own) for one in parts)


def _is(node: ast.expr, own: str) -> bool:
    """Say whether an expression is the argument `own`, or the field of that name of settings."""
    if isinstance(node, ast.Subscript):
        return getattr(node.slice, "value", "") == own
    return getattr(node, "id", getattr(node, "attr", "")) == own


def _named_size(name: str, held: list[str]) -> str:
    """Return the size that the name of an argument of a part says, "" for none."""
    own = squashed(name)
    found = next(sizes_named(own, [squashed(one) for one in held], ""), "")
    found = found or size_by_words(own, "")
    return (
        "" if own in OF_ANY_TABLE or found.endswith("_pad") else found.replace("source", "target")
    )


def _named(node: ast.expr, home: Mapping[str, Any]) -> Any:
    """Return what the name or the dotted name of a called thing is in its file, None for none."""
    if isinstance(node, ast.Name):
        return range if node.id == "range" else home.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_named(node.value, home), node.attr, None)
    return None


def _calls_of(statement: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls of a statement, and none of those inside of it that are statements too."""
    held: list[ast.AST] = [
        one for one in ast.iter_child_nodes(statement) if not isinstance(one, ast.stmt)
    ]
    while held:
        node = held.pop()
        if isinstance(node, ast.Call):
            yield node
        held += [one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.stmt)]


def _targets(statement: ast.stmt) -> str:
    """Return the names that a statement assigns to, as one text."""
    held = statement.targets if isinstance(statement, ast.Assign) else []
    return " ".join(map(ast.unparse, held))


def _is_set(tree: ast.AST, own: str) -> bool:
    """Say whether the constructor itself gives the name `own` another value."""
    names = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and one.id == own]
    return any(isinstance(one.ctx, ast.Store) for one in names)


@lru_cache(maxsize=256)
def _constructor(thing: Any) -> ast.AST:
    """Return the constructor of `thing` as a tree, without statements where there is none."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(thing.__init__)))
    except (AttributeError, OSError, SyntaxError, TypeError):
        return ast.Module([], [])
