"""Masks that functions of the same file make, where they are the contrary of what code takes."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.makers.default_masks import demand_default
from attentest.targets.adapt.masks import meanings_by_words
from attentest.targets.adapt.names import MASKS
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Contrary, Reading

_NAME = re.compile(r"mask|causal|subsequent|triu|tril", re.IGNORECASE)
_LENGTH = 4
_SAID = {"keep": "says what may be attended", "blocks": "says what is hidden"}


def demand_agreement(code: Code, adapter: Adapter, reading: Reading) -> None:
    """Raise Contrary where a mask that code or its file makes means the contrary of its own."""
    slots = {**adapter.arguments.roles, "padding": adapter.arguments.padding}
    for role, one in slots.items():
        if one and role in adapter.styles and not reading.meaning_of(one):
            demand_default(code.name, one, adapter.styles[role].meaning, code.thing)
    own = next((one for role, one in adapter.arguments.roles.items() if role in MASKS), "")
    role = next((role for role, one in adapter.arguments.roles.items() if one == own), "")
    style = adapter.styles.get(role)
    if style is not None and not reading.mask:
        demand_meaning(code.name, own, style.meaning, code.words, code.home)


def demand_meaning(name: str, own: str, meaning: str, words: str, home: ModuleType | None) -> None:
    """Raise Contrary where all masks of order that `home` makes mean the contrary of `meaning`.

    That is what the mask `own` of `name` means by its numbers; its documentation, `words`, decides
    before. A mask that its caller inverts shows nothing, and neither does one that nothing in the
    file calls for.
    """
    if home is None or meaning not in _SAID or meanings_by_words(own, words)[0]:
        return
    made = dict(_makers(home))
    meanings = {*made.values()}
    if len(meanings) != 1 or meaning in meanings:
        return
    (other,) = meanings
    raise Contrary(
        f"By its numbers the {own} of {name} {_SAID[meaning]}, and {next(iter(made))} in the same "
        f"file makes one that {_SAID[other]}: if that is given, it is a mistake. Say which one is "
        f"meant: --set mask={other} or --set mask={meaning} (in Python: mask='{other}')."
    )


def _makers(home: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield the functions of `home` that make a mask of order, and what an entry of it means."""
    for name, one in vars(home).items():
        if inspect.isfunction(one) and one.__module__ == home.__name__ and _NAME.search(name):
            meaning = _meaning(one)
            if meaning and _is_given(home, name):
                yield name, meaning


def _meaning(maker: Callable[..., Any]) -> str:
    """Return what an entry means of the mask that `maker` makes for a length, "" for no mask."""
    needed = [
        one.name
        for one in inspect.signature(maker).parameters.values()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    given = {name: "cpu" if name == "device" else _LENGTH for name in needed}
    if len(needed) - ("device" in needed) != 1:
        return ""
    try:
        with undisturbed():
            made = maker(**given)
    except Exception:  # code that a user wrote may raise anything
        return ""
    if not isinstance(made, Tensor) or made.numel() != _LENGTH**2:
        return ""
    mask = made.reshape(_LENGTH, _LENGTH).double()
    kept = torch.ones(_LENGTH, _LENGTH, dtype=torch.float64).tril()
    return "keep" if torch.equal(mask, kept) else "blocks" * torch.equal(mask, 1 - kept)


def _is_given(home: ModuleType, maker: str) -> bool:
    """Say whether code of the file calls `maker` and inverts nothing that it returns."""
    try:
        tree = ast.parse(inspect.getsource(home))
    except (OSError, TypeError, SyntaxError):
        return False
    scopes = [tree, *(one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef))]
    return _calls(tree, maker) and not any(_inverts(scope, maker) for scope in scopes)


def _inverts(scope: ast.AST, maker: str) -> bool:
    """Say whether a statement in `scope` inverts the mask of `maker`."""
    inside = list(ast.walk(scope))
    held = {
        target.id
        for one in inside
        if isinstance(one, ast.Assign) and _calls(one.value, maker)
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    names = held if isinstance(scope, ast.FunctionDef) else set()
    parts = [part for one in inside for part in _inverted(one)]
    return any(_calls(part, maker) or _reads(part, names) for part in parts)


def _reads(node: ast.AST, names: set[str]) -> bool:
    """Say whether an expression reads one of the `names`."""
    return any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node))


def _inverted(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what an expression inverts: `~x`, `x == 0`, `1 - x`, `x.logical_not()`."""
    match node:
        case ast.UnaryOp(op=ast.Invert() | ast.Not(), operand=part):
            yield part
        case ast.Compare(left=part, ops=[ast.Eq()]):
            yield part
        case ast.BinOp(op=ast.Sub(), right=part):
            yield part
        case ast.Call(func=ast.Attribute(attr="logical_not", value=part)):
            yield part
        case ast.Call(func=ast.Attribute(attr="logical_not"), args=[part, *_]):
            yield part


def _calls(node: ast.AST, maker: str) -> bool:
    """Say whether an expression calls `maker`."""
    return any(
        isinstance(one, ast.Call)
        and maker in (getattr(one.func, "id", ""), getattr(one.func, "attr", ""))
        for one in ast.walk(node)
    )
