"""The code of the file of a decoder-only model, as far as it says what settings may be."""

import ast
import inspect
import textwrap
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=64)
def tree_of(home: Any) -> ast.AST:
    """Return the parsed source of the module `home`, without statements where there is none."""
    try:
        return ast.parse(inspect.getsource(home))
    except (OSError, SyntaxError, TypeError):
        return ast.Module([], [])


def may_be_none(top: Any, field: str) -> bool:
    """Say whether the file of `top` asks whether a field of settings is None.

    It may ask that of an argument which gets the field.
    """
    tree = tree_of(inspect.getmodule(top))
    keywords = [one for one in ast.walk(tree) if isinstance(one, ast.keyword)]
    names = {one.arg for one in keywords if getattr(one.value, "attr", "") == field} | {field}
    asked = [one for one in ast.walk(tree) if isinstance(one, ast.Compare)]
    return any(
        getattr(one.left, "attr", getattr(one.left, "id", "")) in names
        and isinstance(one.ops[0], ast.Is | ast.IsNot)
        and getattr(one.comparators[0], "value", "") is None
        for one in asked
    )


def only_stored(thing: Any, own: str) -> bool:
    """Say whether the constructor of `thing` stores its argument `own`, and uses it nowhere.

    Its name says nothing then that a call could depend on, as that of a tokenizer.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing.__init__)))
    except (AttributeError, OSError, SyntaxError, TypeError):
        return False
    read = [one for one in ast.walk(tree) if isinstance(one, ast.Name) and one.id == own]
    stored = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.Assign)
        and getattr(one.value, "id", "") == own
        and all(isinstance(target, ast.Attribute) for target in one.targets)
    ]
    names = {getattr(one.targets[0], "attr", "") for one in stored}
    later = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.Attribute) and one.attr in names and isinstance(one.ctx, ast.Load)
    ]
    return len(read) == len(stored) == 1 and not later
