"""The code of the file of a decoder-only model, as far as it says what settings may be."""

import ast
import inspect
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
