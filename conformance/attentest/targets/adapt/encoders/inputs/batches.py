"""Encoders whose call takes one batch, which holds the ids: a dictionary, a tuple or an object."""

import ast
import inspect
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.encoders.inputs.makers import class_of
from attentest.targets.adapt.objects.settings import code_tree

_LABELS = ("labels", "label", "targets", "target", "y", "lmlabels")
"""Keys that are read for a loss alone."""


@dataclass(frozen=True)
class Batch:
    """The argument `own` of a call, of which the code reads `items` alone."""

    own: str
    kind: str
    items: tuple[tuple[str, Any, bool], ...]

    @property
    def sentence(self) -> str:
        """The assumption about it."""
        keys = " and ".join(repr(key) for _, key, _ in self.items)
        kind = {"dict": "a dictionary", "tuple": "a tuple", "object": "an object"}[self.kind]
        return f"assumed that {self.own} is {kind} that holds {keys}"


def with_items(built: Construction) -> Construction:
    """Return `built` with a call by the items of its one argument, where its code reads these."""
    batch = batch_of(class_of(built))
    if batch is None:
        return built
    remark = "; ".join(filter(None, (built.remark, batch.sentence)))
    return replace(built, batch=(batch.own, batch.kind, batch.items), remark=remark)


def batch_of(thing: Any) -> Batch | None:
    """Return what is read of the one argument that a call of `thing` needs, None where it is whole.

    Every use of it has to be the reading of an item, another name for it, or a call of a part of
    `thing` that reads items of it in turn.
    """
    forward = getattr(thing, "forward", None)
    if forward is None:
        return None
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    needed = [one.name for one in parameters if one.default is one.empty]
    if len(needed) != 1 or any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return None
    (own,) = needed
    tree = code_tree(forward)
    other = _other_name(tree, own)
    uses = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and one.id in (own, other)]
    handed = list(_handed(thing, tree, (own, other)))
    found = [use for one in filter(None, (own, other)) for use in _read(tree, one)]
    named = len(found) + len(handed) + 2 * bool(other)
    bound = [one for one in uses if isinstance(one.ctx, ast.Store)]
    if not uses or named != len(uses) or len(bound) != bool(other) or None in handed:
        return None
    found += [use for one in handed if one is not None for use in _uses_of(one)]
    kinds = {one[0] for one in found if one[0]}
    kind = kinds.pop() if len(kinds) == 1 else ""
    loaded = {
        one.id
        for one in ast.walk(tree)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
    }
    items = [
        (name, key, needed and (name in loaded or kind != "tuple" or key == 0))
        for name, key, needed in _items(kind, found)
    ]
    return Batch(own, kind, tuple(items)) if kind else None


def _other_name(tree: ast.AST, own: str) -> str:
    """Return the other name that the code gives the argument `own`, "" for none."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=other)], value=ast.Name(id=name)):
                if name == own and other != own:
                    return other
    return ""


def _handed(thing: Any, tree: ast.AST, names: Collection[str]) -> Iterator["Batch | None"]:
    """Yield what the parts of `thing` read that one of `names` is handed to, None for nothing."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="self"), attr=part),
                args=[ast.Name(id=name)],
                keywords=[],
            ) if name in names:
                kind = _class_of_part(thing, part)
                yield batch_of(kind) if kind is not None and kind is not thing else None


def _class_of_part(thing: Any, part: str) -> Any:
    """Return the class of the attribute `part` as the constructor makes it, None for another."""
    home = vars(sys.modules.get(thing.__module__, inspect))
    for node in ast.walk(code_tree(thing.__init__)):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=attribute)],
                value=ast.Call(func=ast.Name(id=made)),
            ) if attribute == part:
                kind = home.get(made)
                return kind if inspect.isclass(kind) and issubclass(kind, nn.Module) else None
    return None


def _uses_of(batch: "Batch") -> Iterator["_Use"]:
    """Yield the uses that a part makes of its own argument."""
    for name, key, needed in batch.items:
        yield batch.kind, [(name, key)], needed


_Use = tuple[str, list[tuple[str, Any]], bool]
"""The kind that a use shows, the names and keys that it reads, and whether it needs them."""


def _items(kind: str, uses: list[_Use]) -> Iterator[tuple[str, Any, bool]]:
    """Yield the name, the key and the need of each item, numbers in order."""
    names: dict[Any, str] = {}
    for _, read, _ in uses:
        names |= {key: name for name, key in read if name or key not in names}
    guarded = {key for _, read, needs in uses for _, key in read if not needs}
    keys = sorted(names) if kind == "tuple" else list(names)
    for key in keys:
        name = names[key] or ("tokens" if key == 0 else f"item{key}")
        yield name, key, key not in guarded and squashed(name) not in _LABELS


def _read(tree: ast.AST, own: str) -> Iterator[_Use]:
    """Yield the uses of the argument `own` that read an item of it, or ask for one."""
    targets = {
        id(one.value): one.targets[0].id
        for one in ast.walk(tree)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)):
                if name == own and type(key) is str and key.isidentifier():
                    yield "dict", [(key, key)], True
                elif name == own and type(key) is int and key >= 0:
                    yield "tuple", [(targets.get(id(node), ""), key)], True
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get"),
                args=[ast.Constant(value=str(key)), *_],
            ) if name == own and key.isidentifier():
                yield "dict", [(key, key)], False
            case ast.Compare(
                left=ast.Constant(value=str(key)),
                ops=[ast.In() | ast.NotIn()],
                comparators=[ast.Name(id=name)],
            ) if name == own:
                yield "dict", [(key, key)], False
            case ast.Attribute(value=ast.Name(id=name), attr=key) if name == own:
                if not hasattr(Tensor, key) and not hasattr(dict, key):
                    yield "object", [(key, key)], True
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Name(id=name)):
                held = [one.id for one in parts if isinstance(one, ast.Name)]
                if name == own and len(held) == len(parts):
                    yield "tuple", [(one, number) for number, one in enumerate(held)], True
